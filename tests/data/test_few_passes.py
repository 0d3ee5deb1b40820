"""From nothing to the first draw, much data are walked over twice."""

import dataclasses
import itertools

import jax
import numpy as np
import pytest
import xarray

import amagold
from amagold.core import trees
from amagold.data import InMemory

pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")

NUM_ROWS = 40_000
visited: list[int] = []


@trees.record()
class Counted(InMemory):
    """Examples in memory that count how many rows walks over all of them visit."""

    def fold(self, visit, carry, chunk_size):
        def counting(carry, chunk):
            new = chunk.rows.sign.shape[0] if chunk.is_new is None else chunk.is_new.sum()
            jax.debug.callback(lambda count: visited.append(int(count)), new)
            return visit(carry, chunk)

        return InMemory.fold(self, counting, carry, chunk_size)

    def some(self, count):
        return InMemory(InMemory.some(self, count).arrays)


def posterior():
    generator = np.random.default_rng(5)
    X = generator.normal(size=(NUM_ROWS, 4)) * [1.0, 2.0, 0.5, 1.0]
    y = generator.random(NUM_ROWS) < 1.0 / (1.0 + np.exp(0.7 - X @ [1.0, -0.5, 0.0, 0.3]))
    built = amagold.models.logistic(X, y)
    return dataclasses.replace(built, data=Counted(built.data))


def num_passes(**arguments):
    visited.clear()
    run = amagold.sample(posterior(), **{"num_chains": 2, "progress": False, **arguments})
    jax.effects_barrier()
    return sum(visited) / NUM_ROWS, run


@pytest.fixture
def much(monkeypatch):
    """Forty thousand rows are many."""
    monkeypatch.setattr("amagold.mode._mode_search.MUCH_WORK", 1)
    monkeypatch.setattr("amagold.mode._mode_search.FEW", 500)
    monkeypatch.setattr("amagold.mode._mode_search.MORE", 4_000)


@pytest.mark.slow
def test_two_passes(much):
    passes, run = num_passes(num_samples=200, num_warmup=100)
    assert run.plan.test == "tuna", "the plan must be the one that reads a few rows"
    assert passes == 2.0


def test_an_interrupted_run_goes_on_to_the_bit(much, tmp_path, monkeypatch):
    monkeypatch.setattr("amagold.sampling._engine.DRAWS_BYTES", 4_000)
    arguments = {"num_samples": 240, "num_warmup": 100}
    _, whole = num_passes(**arguments)
    asked = itertools.count()
    with monkeypatch.context() as patch:
        patch.setattr(
            "amagold.sampling._interruption.Stopper.reason",
            property(lambda stopper: "interrupted" if next(asked) > 8 else None),
        )
        _, part = num_passes(**arguments, store=tmp_path / "run.zarr")
    assert 0 < part.posterior.sizes["draw"] < 240
    visited.clear()
    resumed = amagold.resume(tmp_path / "run.zarr", posterior(), progress=False)
    jax.effects_barrier()
    assert sum(visited) / NUM_ROWS == 1.0
    xarray.testing.assert_equal(resumed.posterior.load(), whole.posterior)
    xarray.testing.assert_equal(resumed.sample_stats.load(), whole.sample_stats)


def test_without_a_start_from_some_of_the_data_there_are_more():
    passes, _ = num_passes(num_samples=2, num_warmup=0)
    assert passes > 3.0
