"""Data on disk: every format holds the same rows, draws are those from memory, damage is named."""

import errno
import json
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import zarr
from filelock import FileLock

import amagold
from amagold.data import _prepare_rows as preparing, _row_store as row_store

pa = pytest.importorskip("pyarrow")
import pyarrow.parquet as pq  # noqa: E402

N = 3_000
GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(size=(N, 3)).astype(np.float32)
Y = (GENERATOR.random(N) < 1 / (1 + np.exp(-X @ [1.0, -1.0, 0.5]))).astype(np.int32)
TABLE = pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "y": Y})


def parquet(folder):
    pq.write_table(TABLE, folder / "rows.parquet", row_group_size=700)
    return folder / "rows.parquet"


def many_parquet(folder):
    (folder / "many").mkdir()
    for number in range(3):
        pq.write_table(TABLE.slice(1000 * number, 1000), folder / "many" / f"{number}.parquet")
    return folder / "many"


def arrow(folder):
    with (
        pa.OSFile(str(folder / "rows.arrow"), "wb") as file,
        pa.ipc.new_file(file, TABLE.schema) as writer,
    ):
        writer.write_table(TABLE, max_chunksize=999)
    return folder / "rows.arrow"


def zarr_group(folder):
    group = zarr.open_group(folder / "rows.zarr", mode="w")
    for name in TABLE.column_names:
        group.create_array(name, data=TABLE[name].to_numpy(), chunks=(700,))
    return folder / "rows.zarr"


def npy_folder(folder):
    (folder / "npy").mkdir()
    for name in TABLE.column_names:
        np.save(folder / "npy" / f"{name}.npy", TABLE[name].to_numpy())
    return folder / "npy"


FORMATS = [parquet, many_parquet, arrow, zarr_group, npy_folder]


def log_likelihood(theta, row):
    logit = theta[0] + theta[1] * row["a"] + theta[2] * row["b"] + theta[3] * row["c"]
    return row["y"] * logit - jnp.logaddexp(0.0, logit)


def log_prior(theta):
    return -0.5 * jnp.sum(theta**2)


def draws_of(data):
    target = amagold.Posterior(log_likelihood, log_prior, data, init=np.zeros(4, np.float32))
    run = amagold.sample(target, 300, 100, seed=3, progress=False)
    return run.posterior["theta"].to_numpy()


@pytest.fixture(scope="module")
def in_memory():
    return draws_of({name: TABLE[name].to_numpy() for name in TABLE.column_names})


@pytest.mark.few(1)
@pytest.mark.parametrize(
    "make",
    [pytest.param(make, marks=() if make is parquet else pytest.mark.slow) for make in FORMATS],
)
def test_draws_are_those_from_memory(make, tmp_path, in_memory):
    data = amagold.data.open(make(tmp_path))
    assert data.num_examples == N
    np.testing.assert_array_equal(draws_of(data), in_memory)


def test_a_converted_copy_is_used_again_until_its_source_changes(tmp_path):
    path = parquet(tmp_path)
    first = amagold.data.open(path, cache=tmp_path / "cache").fingerprint()
    [store] = (tmp_path / "cache").glob("*.rows")
    written = (store / row_store.ROWS).stat().st_mtime_ns
    assert amagold.data.open(path, cache=tmp_path / "cache").fingerprint() == first
    assert (store / row_store.ROWS).stat().st_mtime_ns == written
    pq.write_table(TABLE.slice(0, 2_000), path)
    assert amagold.data.open(path, cache=tmp_path / "cache").num_examples == 2_000


def test_text_becomes_codes_in_order_of_appearance(tmp_path):
    pq.write_table(pa.table({"port": ["b", "a", "b", "c"]}), tmp_path / "t.parquet")
    data = amagold.data.open(tmp_path / "t.parquet")
    np.testing.assert_array_equal(data.rows(np.arange(4))["port"], [0, 1, 0, 2])
    manifest = row_store.read_manifest(tmp_path / "t.parquet.rows")
    assert manifest.fields[0].levels == ("b", "a", "c")


def test_statistics_are_those_of_the_columns(tmp_path):
    amagold.data.prepare(parquet(tmp_path), tmp_path / "store")
    moments = row_store.read_manifest(tmp_path / "store").moments
    np.testing.assert_allclose(moments.mean[:3], X.mean(axis=0, dtype=np.float64), atol=1e-9)
    np.testing.assert_allclose(moments.squares[:3] / N, X.astype(float).var(axis=0), rtol=1e-9)


def test_parts_make_up_the_whole(tmp_path):
    path = npy_folder(tmp_path)
    parts = [amagold.data.open(path, part=(number, 3)) for number in range(3)]
    joined = np.concatenate([part.rows(np.arange(part.num_examples))["a"] for part in parts])
    np.testing.assert_array_equal(joined, X[:, 0])
    with pytest.raises(ValueError, match=r"part must be \(i, n\) with 0 <= i < n, got \(3, 3\)"):
        amagold.data.open(path, part=(3, 3))


def flip(store):
    content = bytearray((store / row_store.ROWS).read_bytes())
    content[-5] ^= 1
    (store / row_store.ROWS).write_bytes(content)


def cut(store):
    content = (store / row_store.ROWS).read_bytes()
    (store / row_store.ROWS).write_bytes(content[:-100])


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (flip, r"path must be undamaged, but rows 0 to 2,999"),
        (cut, "path must hold rows.npy, but"),
        (lambda store: (store / row_store.ROWS).unlink(), "path must hold rows.npy, but"),
        (lambda store: (store / row_store.MANIFEST).write_text("[]"), "cannot be used"),
    ],
)
def test_damage_is_named(damage, words, tmp_path):
    store = amagold.data.prepare(parquet(tmp_path), tmp_path / "store")
    damage(store)
    with pytest.raises(ValueError, match=words):
        amagold.data.open(store)


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ({"a": [1.0, None]}, "no missing values, but column 'a'"),
        ({"a": [1.0, np.inf]}, "finite numbers that float32 has room for, but column 'a'"),
        ({"a": [1, 2**40]}, "whole numbers of 32 bits, but column 'a'"),
        ({"a": pa.array([1, 2], pa.timestamp("s"))}, "'a' of .* is of type timestamp"),
        ({"a": pa.array([], pa.float32())}, "at least one row, got none"),
    ],
)
def test_what_cannot_be_stored_is_refused_and_leaves_nothing(table, words, tmp_path):
    pq.write_table(pa.table(table), tmp_path / "t.parquet")
    with pytest.raises(ValueError, match=words):
        amagold.data.prepare(tmp_path / "t.parquet", tmp_path / "store")
    assert [file.name for file in tmp_path.iterdir()] == ["t.parquet"]


def test_files_with_other_columns_are_named(tmp_path):
    path = many_parquet(tmp_path)
    pq.write_table(pa.table({"a": [1.0], "z": [2.0]}), path / "9.parquet")
    with pytest.raises(ValueError, match=r"same columns, but .*9\.parquet.* differs"):
        amagold.data.open(path)


def test_a_full_disk_leaves_nothing(tmp_path, monkeypatch):
    def full(*arguments):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(preparing, "checksum", full)
    with pytest.raises(ValueError, match="ran out of it; nothing was left there"):
        amagold.data.prepare(parquet(tmp_path), tmp_path / "store")
    assert [file.name for file in tmp_path.iterdir()] == ["rows.parquet"]


def test_another_process_at_work_is_left_alone(tmp_path):
    path = parquet(tmp_path)
    with FileLock(tmp_path / ".store.lock"):
        with pytest.raises(ValueError, match="another process is preparing"):
            amagold.data.prepare(path, tmp_path / "store")
        assert (tmp_path / ".store.lock").exists()
    amagold.data.prepare(path, tmp_path / "store")


@pytest.mark.parametrize("part", [None, (1, 3)])
def test_rows_are_not_copied(part, tmp_path):
    """Else memory would grow with the data."""
    np.save(tmp_path / "x.npy", X)
    data = amagold.data.open(tmp_path / "x.npy", part=part)
    pages = [line for line in Path("/proc/self/maps").read_text().splitlines() if "x.npy" in line]
    spans = [[int(edge, 16) for edge in line.split()[0].split("-")] for line in pages]
    address = data.arrays.unsafe_buffer_pointer()
    assert any(low <= address < high for low, high in spans)


def test_data_of_one_form_share_their_programs(tmp_path):
    count = jax.jit(lambda data: data.num_examples * jnp.ones(()))
    for number, names in enumerate((["a", "b"], ["c", "d"])):
        path = tmp_path / f"{number}.parquet"
        pq.write_table(pa.table({"port": names, "x": [float(number), 1.0]}), path)
        count(amagold.data.open(path))
    assert count._cache_size() == 1


def test_a_stopped_conversion_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(row_store, "BLOCK_BYTES", 16 * 100)
    monkeypatch.setattr(preparing, "JOURNAL_BLOCKS", 1)
    whole = row_store.read_manifest(amagold.data.prepare(parquet(tmp_path), tmp_path / "whole"))
    written = preparing.checksum

    def interrupted(words):
        if len(seen) == 10:
            raise KeyboardInterrupt
        seen.append(len(words))
        return written(words)

    seen = []
    with monkeypatch.context() as patch:
        patch.setattr(preparing, "checksum", interrupted)
        with pytest.raises(KeyboardInterrupt):
            amagold.data.prepare(tmp_path / "rows.parquet", tmp_path / "store")
    journal = json.loads((tmp_path / ".store.partial" / preparing.JOURNAL).read_text())
    assert len(journal["checksums"]) == 10
    again = row_store.read_manifest(
        amagold.data.prepare(tmp_path / "rows.parquet", tmp_path / "store")
    )
    assert again.checksums == whole.checksums
    assert again.seal == whole.seal
