"""Of large files only the rows that are looked at come into memory."""

import numpy as np
import pytest
from invented_draws import invented_draws

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")
pytest.importorskip("pyarrow")

from amagold.tables import _file_rows  # noqa: E402
from amagold.tables._observed_rows import observed_rows  # noqa: E402

NUM_ROWS = 500
FORMULA = "late ~ x * ward"


def table():
    generator = np.random.default_rng(3)
    x = generator.normal(size=NUM_ROWS)
    return pandas.DataFrame(
        {
            "x": x,
            "ward": generator.choice(["a", "b", "c"], NUM_ROWS),
            "late": generator.choice(["no", "yes"], NUM_ROWS),
            "times": 1.0 + generator.integers(0, 3, NUM_ROWS) + 3 * (x > 0.5),
        }
    )


@pytest.fixture
def is_large(monkeypatch):
    """Small files count as large, and come in several parts."""
    monkeypatch.setattr(_file_rows, "FEWEST", 1)
    monkeypatch.setattr("amagold.tables._row_batches.ROWS_AT_ONCE", 64)


def stored(folder, suffix, frame):
    path = folder / f"rows.{suffix}"
    if suffix == "parquet":
        frame.to_parquet(path)
    else:
        frame.to_feather(path)
    return path


@pytest.mark.parametrize("suffix", ["parquet", "arrow"])
@pytest.mark.parametrize("weights", [None, "times"])
def test_the_same_rows_as_of_the_whole_table(tmp_path, is_large, suffix, weights):
    of_rows = {} if weights is None else {"weights": weights}
    run, path = invented_draws(FORMULA, table(), "logistic", **of_rows), tmp_path
    path = stored(tmp_path, suffix, table())
    assert isinstance(observed_rows(run.model, path, are_few=True).frame, _file_rows.FileRows)
    few = {"num_rows": 40, "seed": 1}
    pandas.testing.assert_frame_equal(
        run.effects(table=str(path), **few), run.effects(table=table(), **few)
    )
    ours, theirs = (
        run.predictive_check(table=given, **few).calibration for given in (path, table())
    )
    pandas.testing.assert_frame_equal(ours, theirs)
    # the planted bug: rows that are those of other numbers
    other = observed_rows(run.model, table().iloc[::-1], are_few=True).some(40, 1).frame
    mine = observed_rows(run.model, path, are_few=True).some(40, 1).frame
    assert not np.array_equal(other["x"].to_numpy(), mine["x"].to_numpy())


def test_rows_by_number_and_slice(tmp_path, is_large):
    frame = table()
    found = _file_rows.rows_of_file(stored(tmp_path, "parquet", frame), ["late", "x"], ["late"])
    rows, beside = found
    assert len(rows) == NUM_ROWS
    assert beside.columns == ["late"]
    for chosen in ([499, 3, 3, 70], slice(60, 70)):
        wanted = frame["x"].to_numpy()[chosen]
        np.testing.assert_array_equal(rows[chosen]["x"].to_numpy(), wanted)


@pytest.mark.parametrize("spoilt", ["missing", "not a number", "weightless", "text", "gone"])
def test_whatever_is_not_whole_is_read_as_before(tmp_path, is_large, spoilt):
    run = invented_draws(FORMULA, table(), "logistic", weights="times")
    frame = table()
    if spoilt == "missing":
        frame.loc[400, "ward"] = None
    elif spoilt == "not a number":
        frame.loc[400, "x"] = np.nan
    elif spoilt == "weightless":
        frame.loc[400, "times"] = 0.0
    path = stored(tmp_path, "parquet", frame)
    if spoilt == "text":
        path = tmp_path / "rows.csv"
        frame.to_csv(path, index=False)
    elif spoilt == "gone":
        path = tmp_path / "none.parquet"
    assert run.model.file_rows(path) is None
    if spoilt in ("missing", "not a number", "gone"):
        with pytest.raises(ValueError, match="table must"):
            run.effects(table=path)
