"""A row store in shards: the same rows in the same order, and one clear line for each damage."""

import shutil

import jax
import jax.numpy as jnp
import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import amagold
from amagold.data._shards import SHARDS

NUM_ROWS = 101


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    folder = tmp_path_factory.mktemp("table")
    generator = np.random.default_rng(3)
    table = pyarrow.table(
        {
            "x": generator.normal(size=NUM_ROWS).astype(np.float32),
            "late": (generator.random(NUM_ROWS) < 0.4).astype(np.int32),
        }
    )
    pyarrow.parquet.write_table(table, folder / "table.parquet")
    return amagold.data.prepare(folder / "table.parquet", folder / "table.rows")


@pytest.fixture
def shards(store, tmp_path):
    return amagold.data.split(store, tmp_path / "shards", 3)


def rows_of(data):
    return jax.tree.map(np.asarray, data.rows(jnp.arange(data.num_examples)))


def test_shards_are_the_store(store, shards):
    whole, joined = amagold.data.open(store), amagold.data.open(shards)
    assert joined.num_examples == NUM_ROWS
    assert joined.fingerprint() == whole.fingerprint()
    for name, values in rows_of(whole).items():
        np.testing.assert_array_equal(rows_of(joined)[name], values)
    parts = [rows_of(amagold.data.open(shards, part=(place, 3))) for place in range(3)]
    together = np.concatenate([part["x"] for part in parts])
    np.testing.assert_array_equal(together, rows_of(whole)["x"])


def test_a_model_of_shards_is_that_of_the_store(store, shards):
    ours, theirs = (
        amagold.models.logistic(amagold.data.open(place), outcome="late")
        for place in (shards, store)
    )
    position = jax.tree.map(lambda leaf: leaf + 0.3, ours.init)
    found = [amagold.energy_difference(each, position, each.init) for each in (ours, theirs)]
    assert found[0] == pytest.approx(found[1], rel=1e-6)
    assert found[0] != 0.0


def damage(shards, kind):
    first, second = (shards / f"shard-{place:05d}-of-00003" for place in (0, 1))
    if kind == "missing":
        shutil.rmtree(second)
    elif kind == "swapped":
        first.rename(shards / "aside")
        second.rename(first)
        (shards / "aside").rename(second)
    elif kind == "truncated":
        rows = second / "rows.npy"
        rows.write_bytes(rows.read_bytes()[:-40])
    elif kind == "corrupt":
        rows = second / "rows.npy"
        content = bytearray(rows.read_bytes())
        content[-30] ^= 1
        rows.write_bytes(bytes(content))
    elif kind == "other columns":
        manifest = second / "rows.json"
        manifest.write_text(manifest.read_text().replace('"late"', '"early"'))
    else:
        (shards / SHARDS).write_text("{}")


DAMAGES = {
    "missing": "path must hold shard 1 of 3, but .* is missing",
    "swapped": "path must hold shard 0 of 3 as it was split, but .* is another",
    "truncated": "path must hold (rows.npy|34 rows|3. rows)",
    "corrupt": "path must be undamaged, but rows 0 to 3. of .* are not as they were written",
    "other columns": "path must hold shard 1 of 3 as it was split, but .* is another",
    "no description": "path must be a folder of shards, but .* cannot be used",
}


@pytest.mark.parametrize("kind", DAMAGES)
def test_damage_is_said_in_one_line(shards, kind):
    damage(shards, kind)
    with pytest.raises(ValueError, match=DAMAGES[kind]) as found:
        amagold.data.open(shards)
    assert "\n" not in str(found.value)


def test_as_many_parts_as_shards(shards):
    with pytest.raises(ValueError, match="part must be one of 3, because there are as many shards"):
        amagold.data.open(shards, part=(0, 2))


def test_bad_input_leaves_nothing(store, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="source must be a row store"):
        amagold.data.split(tmp_path, tmp_path / "out", 2)
    with pytest.raises(ValueError, match="shards must be at most the 101 rows"):
        amagold.data.split(store, tmp_path / "out", 102)
    with pytest.raises(ValueError, match="destination must not exist yet"):
        amagold.data.split(store, tmp_path, 2)
    usage = shutil.disk_usage(tmp_path)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=10))
    with pytest.raises(ValueError, match="destination must be on a disk with room for"):
        amagold.data.split(store, tmp_path / "out", 2)
    assert not list(tmp_path.iterdir())
