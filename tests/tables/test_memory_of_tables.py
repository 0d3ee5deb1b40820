"""Tables are coded, and looked at again, without copies that only take memory: same answers."""

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")
pytest.importorskip("pyarrow")

import amagold  # noqa: E402
from amagold.tables import _effects  # noqa: E402
from amagold.tables._fit import model_of  # noqa: E402
from amagold.tables._formula_columns import code_type  # noqa: E402
from amagold.tables._read_table import read_table  # noqa: E402

NUM_ROWS = 300
pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")


def table():
    generator = np.random.default_rng(5)
    origin = generator.choice(["EWR", "JFK", "LGA"], NUM_ROWS)
    return pandas.DataFrame(
        {
            "distance": generator.normal(0.0, 1.0, NUM_ROWS),
            "origin": origin,
            "late": (generator.random(NUM_ROWS) < 0.3 + 0.3 * (origin == "JFK")).astype(np.int8),
        }
    )


@pytest.fixture(scope="module")
def parquet(tmp_path_factory):
    path = tmp_path_factory.mktemp("rows") / "flights.parquet"
    table().to_parquet(path, row_group_size=70)
    return path


@pytest.fixture(scope="module")
def run(parquet):
    options = {"num_samples": 50, "num_warmup": 50, "num_chains": 2, "progress": False}
    return amagold.fit("late ~ distance + origin", parquet, **options)


@pytest.mark.parametrize(
    ("number", "bits"), [(0, 8), (1, 8), (128, 8), (129, 16), (2**15, 16), (2**15 + 1, 32)]
)
def test_codes_are_as_narrow_as_their_levels_allow(number, bits):
    kind = np.iinfo(code_type(number))
    assert (kind.bits, kind.min < 0) == (bits, True)
    assert number - 1 <= kind.max


def test_codes_of_many_levels_are_right():
    levels = [f"{number:04d}" for number in range(400)]
    rows = pandas.DataFrame({"level": levels * 2, "few": ["a", "b"] * 400, "y": np.arange(800) % 2})
    terms = model_of("y ~ level + few", read_table(rows), "poisson", None, False, 1.0).terms
    coded = terms.coded(read_table(rows))
    assert coded.codes.dtype == np.int16
    np.testing.assert_array_equal(coded.codes[:, 0], np.tile(np.arange(400) - 1, 2))
    np.testing.assert_array_equal(coded.codes[:, 1], np.tile([-1, 0], 400))


def test_effects_do_not_depend_on_rows_at_a_time(run, monkeypatch):
    whole = run.effects()
    monkeypatch.setattr(_effects, "TOGETHER", 7)
    parts = run.effects()
    assert len(whole) == 3
    for column in ("mean", "sd", "lower", "upper"):
        np.testing.assert_allclose(parts[column], whole[column], rtol=1e-5, atol=1e-7)
