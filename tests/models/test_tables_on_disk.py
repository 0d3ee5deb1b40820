"""Regressions of a table on disk are those of the same table in memory, to the bit."""

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import xarray

import amagold
from amagold import models

pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")

N = 2_500
GENERATOR = np.random.default_rng(11)
NEAR = GENERATOR.normal(size=(N, 2)).astype(np.float32)
FAR = (NEAR * [1.0, 200.0] + [40.0, 0.0]).astype(np.float32)  # asks to be standardised
Z = NEAR @ [0.8, -0.4]
OUTCOMES = {
    "logistic": (GENERATOR.random(N) < 1.0 / (1.0 + np.exp(-Z))).astype(np.float32),
    "probit": (GENERATOR.normal(size=N) < Z).astype(np.float32),
    "poisson": GENERATOR.poisson(np.exp(0.3 * Z)).astype(np.float32),
    "softmax": GENERATOR.integers(0, 3, size=N).astype(np.int32),
    "linear": (5.0 + Z + GENERATOR.normal(size=N)).astype(np.float32),
    "robust": (5.0 + Z + GENERATOR.standard_t(4, size=N)).astype(np.float32),
}


def on_disk(folder, X, y):
    table = {"first": X[:, 0], "outcome": y, "second": X[:, 1]}
    pq.write_table(pa.table(table), folder / "table.parquet")
    return amagold.data.open(folder / "table.parquet")


def drawn(target):
    run = amagold.sample(target, 20, 20, num_chains=2, seed=2, progress=False)
    return run.posterior


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "place"),
    [(family, place) for family in OUTCOMES for place in ("near", "far")],
)
def test_draws_are_those_from_memory(family, place, tmp_path):
    X, y = {"near": NEAR, "far": FAR}[place], OUTCOMES[family]
    of_disk = getattr(models, family)(on_disk(tmp_path, X, y), outcome="outcome")
    of_memory = getattr(models, family)(X, y)
    assert (of_disk.transform is None) == (of_memory.transform is None)
    assert of_disk.notes == of_memory.notes
    rows = of_disk.examples.rows(np.arange(N))
    for here, there in zip(rows, of_memory.data, strict=True):
        np.testing.assert_array_equal(here, there)
    xarray.testing.assert_identical(drawn(of_disk), drawn(of_memory))


@pytest.mark.slow
def test_much_data_are_searched_alike(tmp_path, monkeypatch):
    """The mode from some of the rows, and bounds from the last pass."""
    monkeypatch.setattr("amagold.mode._mode_search.MUCH_WORK", 1)
    monkeypatch.setattr("amagold.mode._mode_search.FEW", 100)
    monkeypatch.setattr("amagold.mode._mode_search.MORE", 300)
    monkeypatch.setattr("amagold.data._in_memory.NUM_RUNS", 50)
    y = OUTCOMES["logistic"]
    of_disk = drawn(models.logistic(on_disk(tmp_path, FAR, y), outcome="outcome"))
    xarray.testing.assert_identical(of_disk, drawn(models.logistic(FAR, y)))


def test_a_folder_of_arrays_is_a_table_too(tmp_path):
    np.save(tmp_path / "X.npy", NEAR)
    np.save(tmp_path / "y.npy", OUTCOMES["logistic"])
    target = models.logistic(amagold.data.open(tmp_path), outcome="y", intercept=False)
    rows = target.examples.rows(np.arange(N))
    np.testing.assert_array_equal(rows.predictors, NEAR)
    np.testing.assert_array_equal(rows.sign, 2.0 * OUTCOMES["logistic"] - 1.0)


def test_whole_numbers_keep_their_differences(tmp_path):
    """Seconds of one day since 1970, which float32 rounds to steps of two minutes."""
    seconds = 1_700_000_000 + np.arange(N) * 30
    y = OUTCOMES["logistic"]
    pq.write_table(pa.table({"time": seconds.astype(np.int32), "y": y}), tmp_path / "t.parquet")
    of_disk = models.logistic(amagold.data.open(tmp_path / "t.parquet"), outcome="y")
    of_memory = models.logistic(seconds[:, None], y)
    rows = of_disk.examples.rows(np.arange(N))
    np.testing.assert_array_equal(rows.predictors, of_memory.data.predictors)


def sentence(build, *arguments, **named):
    try:
        build(*arguments, **named)
    except ValueError as reason:
        return str(reason)
    raise AssertionError("it was not refused")


def test_what_is_refused(tmp_path):
    data = on_disk(tmp_path, NEAR, OUTCOMES["linear"])
    assert sentence(models.logistic, data).startswith(
        "outcome must be one of the columns, but none was given: there are 'first', 'outcome'"
    )
    assert "but 'late' is none" in sentence(models.logistic, data, outcome="late")
    assert "y must not be given" in sentence(models.logistic, data, NEAR, outcome="outcome")
    assert sentence(models.logistic, data, outcome="outcome").startswith(
        "outcome must hold 0 and 1 (or -1 and 1), but 'outcome' holds other numbers from"
    )
    assert "counts, whole numbers from 0" in sentence(models.poisson, data, outcome="outcome")
    assert "classes as whole numbers" in sentence(models.softmax, data, outcome="outcome")
    assert "outcome must not be given" in sentence(models.linear, NEAR, Z, outcome="outcome")
    assert "y must be given" in sentence(models.linear, NEAR)


def test_three_numbers_are_not_two_classes(tmp_path):
    y = np.resize(np.float32([-1.0, 0.0, 1.0]), N)
    data = on_disk(tmp_path, NEAR, y)
    assert "outcome must hold 0 and 1" in sentence(models.logistic, data, outcome="outcome")
    y = np.resize(np.float32([-1.0, 1.0]), N)
    (tmp_path / "two").mkdir()
    target = models.logistic(on_disk(tmp_path / "two", NEAR, y), outcome="outcome")
    np.testing.assert_array_equal(target.examples.rows(np.arange(N)).sign, y)


def test_texts_and_parts_are_refused(tmp_path):
    table = {"port": ["a", "b"] * 5, "y": [0, 1] * 5}
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    opened = amagold.data.open(tmp_path / "t.parquet")
    assert "column 'port' holds texts" in sentence(models.logistic, opened, outcome="y")
    without = amagold.data.open(tmp_path / "t.parquet", columns=["y"])
    assert models.logistic(without, outcome="y").num_examples == 10
    np.save(tmp_path / "alone.npy", NEAR)
    alone = amagold.data.open(tmp_path / "alone.npy")
    assert "X must have named columns" in sentence(models.logistic, alone, outcome="y")
