"""A file that changes while draws are made from it stops the run, by name."""

import os

import numpy as np
import pytest

import amagold
from amagold.data import changed_file

NUM_ROWS = 400


def table(folder):
    generator = np.random.default_rng(0)
    folder.mkdir()
    np.save(folder / "X.npy", generator.normal(size=(NUM_ROWS, 2)).astype(np.float32))
    np.save(folder / "y.npy", (generator.random(NUM_ROWS) < 0.5).astype(np.float32))
    return folder


def npy(tmp_path):
    place = table(tmp_path / "columns")
    return amagold.data.open(place), place / "X.npy"


def store(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    place = tmp_path / "rows"
    parquet.write_table(pyarrow.table({"x": np.arange(NUM_ROWS)}), tmp_path / "x.parquet")
    amagold.data.prepare(tmp_path / "x.parquet", place, progress=False)
    return amagold.data.open(place), next(place.glob("rows*"))


def shards(tmp_path):
    _, rows = store(tmp_path)
    place = tmp_path / "shards"
    amagold.data.split(rows.parent, place, 2, progress=False)
    return amagold.data.open(place), sorted(place.rglob(rows.name))[-1]


@pytest.mark.parametrize("kind", [npy, store, shards])
def test_it_is_noticed(kind, tmp_path):
    data, file = kind(tmp_path)
    assert changed_file(data) is None
    os.utime(file, ns=(0, 0))
    assert changed_file(data) == file


def test_the_run_stops_and_says_which(tmp_path):
    data, file = npy(tmp_path)
    target = amagold.models.logistic(data, outcome="y")
    file.unlink()
    with pytest.raises(ValueError, match=r"X\.npy' has been written to or removed"):
        amagold.sample(target, 20, 10, 2, progress=False)


def test_data_in_memory_and_no_data_have_no_files():
    for target in (
        amagold.models.logistic(np.ones((4, 1)), np.array([0, 1, 0, 1])),
        amagold.models.double_well(),
    ):
        assert changed_file(target.examples) is None
