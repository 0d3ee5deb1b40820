"""Tables that are kept in temporary files give the draws of tables in memory, to the bit."""

import errno
import os
import tempfile

import jax
import numpy as np
import pandas
import pyarrow
import pytest
import xarray
from pyarrow import parquet

import amagold
from amagold.core import scratch
from amagold.models._row_terms import RowTerms
from amagold.tables import _large_table, _read_table, _row_batches, _some_rows
from amagold.tables._fit import model_of
from amagold.tables._read_table import read_table

NUM_ROWS = 600


@pytest.fixture(autouse=True)
def small_parts(monkeypatch):
    """So that tables of a test have many of them."""
    monkeypatch.setattr(_some_rows.parts_of, "__defaults__", (97,))
    monkeypatch.setattr(_row_batches, "ROWS_AT_ONCE", 101)
    monkeypatch.setattr(_large_table, "HELD", 50)
    monkeypatch.setattr(_large_table, "ROWS_AT_ONCE", 97)


def table_of(num_rows=NUM_ROWS):
    generator = np.random.default_rng(3)
    return pandas.DataFrame(
        {
            "late": generator.random(num_rows) < 0.3,
            "events": generator.poisson(2.0, num_rows),
            "size": np.exp(generator.normal(size=num_rows)),
            "grade": generator.integers(0, 3, num_rows),
            "x": generator.normal(size=num_rows),
            "month": generator.integers(1, 5, num_rows),
            "port": pandas.Categorical(
                generator.choice(["b", "a", "zz"], num_rows), ["zz", "b", "a"]
            ),
            "carrier": generator.choice(["B6", "AA", "UA"], num_rows),
            "weight": generator.integers(0, 3, num_rows),
        }
    )


def model(formula, source, family="logistic", out_of_core=True, drop_missing=False, **of_rows):
    frame = read_table(source, out_of_core=out_of_core)
    return model_of(formula, frame, family, None, drop_missing, None, None, out_of_core, **of_rows)


def check_same(ours, theirs):
    """What is sampled is the same to the bit, and is said in the same words."""
    assert ours.target.examples.fingerprint() == theirs.target.examples.fingerprint()
    numbers = [
        jax.tree.leaves((model.target.log_prior, model.target.transform))
        for model in (ours, theirs)
    ]
    assert len(numbers[0]) == len(numbers[1])
    for here, there in zip(*numbers, strict=True):
        np.testing.assert_array_equal(here, there)
    assert ours.target.labels == theirs.target.labels
    assert ours.terms.doubts == theirs.terms.doubts
    assert ours.terms.terms == theirs.terms.terms


@pytest.mark.parametrize(
    ("formula", "family", "options"),
    [
        ("late ~ x + C(month) + port + x:carrier", "logistic", {}),
        ("late ~ C(month) + carrier", "logistic", {"weights": "weight"}),  # merged
        ("events ~ scale(x) + carrier", "poisson", {"weights": "weight", "exposure": "size"}),
        ("size ~ x + C(month)", "gamma", {}),
        ("grade ~ x + carrier", "ordinal", {}),
        ("x ~ C(month) * carrier", "linear", {"offset": "size"}),
    ],
)
def test_the_posterior_is_that_of_a_table_in_memory(formula, family, options):
    check_same(*(model(formula, table_of(), family, flag, **options) for flag in (False, True)))


@pytest.mark.slow
def test_draws_are_those_of_a_table_in_memory():
    runs = [
        amagold.fit("x ~ C(month) + port", table_of(), "linear", out_of_core=flag, progress=False)
        for flag in (False, True)
    ]
    assert dict(runs[0].posterior.sizes)["draw"] == 1000
    xarray.testing.assert_identical(*(run.posterior.drop_attrs() for run in runs))


@pytest.mark.parametrize("kind", ["csv", "csv.gz", "parquet", "arrow", "folder", "store", "lazy"])
def test_every_source(kind, tmp_path):
    table = table_of()
    if kind == "lazy":
        polars = pytest.importorskip("polars")
        source = polars.from_pandas(table).lazy()
    else:
        source = _written(table, kind, tmp_path)
    models = [
        model("late ~ x + C(month) + port + carrier", source, out_of_core=flag)
        for flag in (False, True)
    ]
    assert models[1].facts.num_used == NUM_ROWS
    check_same(*models)


def _written(table, kind, folder):
    if kind.startswith("csv"):
        table.to_csv(folder / f"table.{kind}", index=False)
        return folder / f"table.{kind}"
    arrow = pyarrow.Table.from_pandas(table, preserve_index=False)
    if kind == "parquet":
        parquet.write_table(arrow, folder / "table.parquet", row_group_size=70)
        return folder / "table.parquet"
    if kind == "arrow":
        with pyarrow.ipc.new_file(folder / "table.arrow", arrow.schema) as file:
            for batch in arrow.to_batches(max_chunksize=90):
                file.write_batch(batch)
        return folder / "table.arrow"
    (folder / "parts").mkdir()
    parquet.write_table(arrow[:250], folder / "parts" / "1.parquet")
    parquet.write_table(arrow[250:], folder / "parts" / "2.parquet")
    if kind == "folder":
        return folder / "parts"
    return amagold.data.prepare(folder / "parts", folder / "rows", progress=False)


def test_rows_are_in_files_and_nothing_stays_behind(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    found = {}

    def remembered(*arguments, **more):
        found["parts"] = _large_table.coded_parts(*arguments, **more)
        return found["parts"]

    monkeypatch.setattr("amagold.tables._fit.coded_parts", remembered)
    target = model("late ~ x + port", table_of()).target
    table = found["parts"].table
    assert scratch.is_in_file(table.numbers)
    assert scratch.is_in_file(table.codes)
    assert found["parts"].merged is None
    assert target.num_examples == NUM_ROWS
    assert not list(tmp_path.iterdir())


def test_few_different_rows_come_into_memory():
    found = model("late ~ C(month) + port + carrier", table_of(3000))
    assert found.target.num_examples <= 36
    assert np.asarray(found.target.examples.arrays.trials).sum() == 3000


def test_merging_that_brings_nothing_is_given_up():
    table = table_of()
    parts = _large_table.Merging(as_trials=True)
    coded = model("late ~ x", table, out_of_core=False).terms.coded(read_table(table))
    for start in range(0, NUM_ROWS, 97):
        rows = slice(start, start + 97)
        parts.add(coded.take(rows), table["late"].to_numpy()[rows].astype(float), RowTerms())
    assert parts.result() is None


@pytest.mark.parametrize("late", ["7.5", "many", ""])
def test_texts_whose_columns_turn_out_to_be_something_else(late, tmp_path, monkeypatch):
    """Types are those of all rows, not of the first ones."""
    monkeypatch.setattr("amagold.tables._read_text.ONE_READ", 1024)
    values = [str(number % 9) for number in range(2000)]
    values[1900] = late
    lines = ["late,size", *(f"{row % 3 % 2},{value}" for row, value in enumerate(values))]
    (tmp_path / "table.csv").write_text("\n".join(lines) + "\n")
    frames = [read_table(tmp_path / "table.csv", out_of_core=flag) for flag in (False, True)]
    ours, theirs = (frame["size"].to_list() for frame in frames)
    assert ours == theirs
    assert len(theirs) == 2000


def test_missing_values_are_counted_over_all_rows_or_dropped(tmp_path):
    table = table_of()
    table.loc[[3, 300, 590], "x"] = np.nan
    table.loc[[5], "carrier"] = None
    parquet.write_table(pyarrow.Table.from_pandas(table), tmp_path / "table.parquet")
    formula, path = "late ~ x + carrier", tmp_path / "table.parquet"
    with pytest.raises(ValueError, match="1 in 'carrier', 3 in 'x'"):
        model(formula, path)
    models = [model(formula, path, out_of_core=flag, drop_missing=True) for flag in (False, True)]
    check_same(*models)
    assert models[1].facts.num_used == NUM_ROWS - 4


def test_what_comes_next_reads_the_same_rows(tmp_path):
    path = _written(table_of(), "parquet", tmp_path)
    ours, theirs = (model("late ~ x + port", path, out_of_core=flag) for flag in (False, True))
    rows = theirs.rows()  # at hand, though the model was not told of a file
    assert rows.columns == ours.columns
    assert rows["x"].to_list() == table_of()["x"].to_list()
    assert rows["port"].to_list() == table_of()["port"].to_list()


def test_large_files_are_known_by_their_size(tmp_path, monkeypatch):
    path = _written(table_of(), "parquet", tmp_path)
    spooled = []

    def noted(batches):
        spooled.append(True)
        return _spooled(batches)

    _spooled = _read_table.spooled
    monkeypatch.setattr(_read_table, "spooled", noted)
    read_table(path)
    assert not spooled
    monkeypatch.setattr(scratch, "memory_bytes", lambda: 1000.0)
    read_table(path)
    assert spooled


def test_a_full_disk_is_said(monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(OSError, match="set TMPDIR to one that has"):
        scratch.scratch((10, 3), np.float32)
