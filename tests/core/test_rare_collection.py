"""What a process has set for its garbage collector is there again after a run."""

import gc
from collections.abc import Iterator

import pytest

from amagold.core.rare_collection import FEWEST_NEW, rare_collection

USUAL = (700, 10, 10)  # Python's own, whatever this process has


@pytest.fixture(autouse=True)
def usual_thresholds() -> Iterator[None]:
    before = gc.get_threshold()
    gc.set_threshold(*USUAL)
    yield
    gc.set_threshold(*before)


def test_it_is_rare_within_and_as_before_after() -> None:
    with rare_collection():
        assert gc.get_threshold() == (FEWEST_NEW, *USUAL[1:])
        with rare_collection():
            pass
        assert gc.get_threshold()[0] == FEWEST_NEW
    assert gc.get_threshold() == USUAL


def test_it_comes_back_after_an_error() -> None:
    with pytest.raises(ZeroDivisionError), rare_collection():
        _ = 1 / 0
    assert gc.get_threshold() == USUAL


@pytest.mark.parametrize("own", [0, FEWEST_NEW + 1])
def test_who_looks_more_rarely_is_left_alone(own: int) -> None:
    gc.set_threshold(own, *USUAL[1:])
    with rare_collection():
        assert gc.get_threshold()[0] == own
