"""Stores that were edited, damaged or made up: one sentence, nothing outside touched, nothing
executed.
"""

import json
import os
import pickle
import shutil
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
import xarray

import amagold
from amagold.sampling._labels import MIXED, check_label
from amagold.store import _sealed_chunk as chunk
from amagold.store._checkpoint import CheckpointFolder, decode, encode
from amagold.store._names import Variable
from amagold.store._root import places
from amagold.store._seal import seal, unseal
from amagold.store._zarr_store import ZarrStore
from amagold_lab.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")

SAMPLER = amagold.hmc(
    amagold.Density(lambda at: -0.5 * (at["x"] @ at["x"])), step_size=0.5, num_steps=4
)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("original") / "run.zarr"
    amagold.sample(SAMPLER, 50, 20, 2, init={"x": np.zeros(2)}, store=path, progress=False)
    ZarrStore(path).commit({}, {"is_complete": False})
    return path


@pytest.fixture
def store(original, tmp_path):
    return shutil.copytree(original, tmp_path / "run.zarr")


@pytest.fixture(scope="module")
def draws(original):
    return amagold.load(original).posterior["x"].values


def assert_no_damage(store):
    """The store is as it should be, for other readers too."""
    assert not [sentence for sentence in amagold.load(store).warnings if "damaged" in sentence]
    with xarray.open_datatree(store, engine="zarr") as tree:
        for name, group in amagold.load(store)._groups.items():
            xarray.testing.assert_equal(tree[name].to_dataset().load(), group.load())


def edit(store, change):
    """Edit the root's metadata as somebody would who knows about the checksum and the
    second copy.
    """
    document, facts = unseal(json.loads((store / "zarr.json").read_text()))
    change(document, document["attributes"], document["consolidated_metadata"]["metadata"])
    is_whole = isinstance(document.get("attributes"), dict)
    for file in places(store):
        file.write_text(json.dumps(seal(document, **facts) if is_whole else document))


# Zarr takes such an array for one of texts, and lets the last filter decode first
V2 = {
    "zarr_format": 2,
    "shape": [2, 50, 2],
    "chunks": [2, 50, 2],
    "dtype": "|O",
    "fill_value": "",
    "order": "C",
    "filters": [{"id": "vlen-utf8"}, {"id": "pickle", "protocol": 5}],
    "compressor": None,
}
EDITS = {
    "no settings": lambda root, facts, arrays: facts.pop("settings"),
    "an extra setting": lambda root, facts, arrays: facts["settings"].update(more=1),
    "more draws than there is room for": lambda root, facts, arrays: facts["settings"].update(
        num_samples=500
    ),
    "a setting of another type": lambda root, facts, arrays: facts["settings"].update(thin="2"),
    "no plan": lambda root, facts, arrays: facts.pop("plan"),
    "a plan of another kind": lambda root, facts, arrays: facts["plan"].update(kind="os.system"),
    "facts of another type": lambda root, facts, arrays: root.update(attributes="facts"),
    "a position of another type": lambda root, facts, arrays: facts.update(position="x"),
    "no versions": lambda root, facts, arrays: facts.pop("versions"),
    "no label": lambda root, facts, arrays: facts.pop("label"),
    "a time of another type": lambda root, facts, arrays: facts.update(sampling_time=[1]),
    "no fingerprint": lambda root, facts, arrays: facts.pop("data_fingerprint"),
    "metadata of another type": lambda root, facts, arrays: root["consolidated_metadata"].update(
        metadata=[1]
    ),
    "an endless length": lambda root, facts, arrays: arrays["posterior/x"].update(
        shape=[2, 10**12, 2]
    ),
    "an endless draw axis": lambda root, facts, arrays: arrays["posterior/draw"].update(
        shape=[10**12]
    ),
    "an axis that is not there": lambda root, facts, arrays: arrays["posterior/draw"].update(
        shape=[]
    ),
    "a label of its own": lambda root, facts, arrays: facts.update(label="exact, certified"),
    "a label of another run": lambda root, facts, arrays: facts.update(label="biased"),
    "a time that is none": lambda root, facts, arrays: facts.update(sampling_time=float("nan")),
    "a time without end": lambda root, facts, arrays: facts.update(compile_time=float("inf")),
    "a reason with an escape": lambda root, facts, arrays: facts.update(stopped="\x1b[2Jdone"),
    "a version with an escape": lambda root, facts, arrays: facts["versions"].update(
        jax="\x1b]0;mine\x07"
    ),
    "a plan with an escape": lambda root, facts, arrays: facts["plan"].update(
        proposal="\x9b31mLeapfrog"
    ),
    "a plan with a list": lambda root, facts, arrays: facts["plan"].update(num_steps=[4]),
    "a plan with a text": lambda root, facts, arrays: facts["plan"].update(step_size="0.5"),
    "a plan without a field": lambda root, facts, arrays: facts["plan"].pop("numbers"),
    "spoilt by a number": lambda root, facts, arrays: facts.update(spoilt=[1]),
    "a position of objects": lambda root, facts, arrays: facts.update(
        position=["leaf", [[2], "object"]]
    ),
    "a scale and an offset": lambda root, facts, arrays: arrays["posterior/x"]["attributes"].update(
        scale_factor=100.0, add_offset=1.0
    ),
    "a fill value": lambda root, facts, arrays: arrays["posterior/x"].update(fill_value=1.0),
    "another type": lambda root, facts, arrays: arrays["posterior/x"].update(data_type="int32"),
    "a time for a type": lambda root, facts, arrays: arrays["posterior/x"].update(
        data_type="numpy.datetime64"
    ),
    "an earlier format": lambda root, facts, arrays: arrays.update({"posterior/x": V2}),
    "another codec": lambda root, facts, arrays: arrays["posterior/x"]["codecs"].insert(
        1, {"name": "numcodecs.pickle"}
    ),
    "a codec for a coordinate": lambda root, facts, arrays: arrays["posterior/chain"][
        "codecs"
    ].insert(1, {"name": "gzip"}),
    "an array of our own kind beside": lambda root, facts, arrays: arrays.update(
        {"posterior/y": arrays["posterior/x"]}
    ),
    "an array that is left out": lambda root, facts, arrays: arrays.pop("posterior/x"),
    "a huge chunk": lambda root, facts, arrays: arrays["posterior/x"]["chunk_grid"][
        "configuration"
    ].update(chunk_shape=[2, 2**29, 2]),
    "a name with an escape": lambda root, facts, arrays: arrays.update(
        {"posterior/\x1b[31mx": arrays.pop("posterior/x")}
    ),
    "a name that leads outside": lambda root, facts, arrays: arrays.update(
        {"posterior/../../victim": arrays["posterior/x"]}
    ),
    "a group that leads outside": lambda root, facts, arrays: arrays.update(
        {"../victim/x": arrays["posterior/x"]}
    ),
}


@pytest.mark.parametrize(
    "open_it",
    [amagold.load, lambda path: amagold.resume(path, SAMPLER, progress=False)],
    ids=["load", "resume"],
)
@pytest.mark.parametrize("change", EDITS)
def test_an_edited_description_is_refused_in_one_sentence(store, change, open_it):
    victim = store.parent / "victim"
    shutil.copytree(store / "posterior" / "x", victim)
    chunk = next((victim / "c").rglob("[0-9]*/[0-9]*/[0-9]*"))
    chunk.write_bytes(b"mine")
    edit(store, EDITS[change])
    with pytest.raises(
        ValueError,
        match=r"path must be the folder of a run stored by amagold, but what .* says of itself "
        r"cannot be used",
    ):
        open_it(store)
    assert chunk.read_bytes() == b"mine"


@pytest.mark.parametrize("missing", ["sample_stats", "posterior/x"])
def test_a_missing_part_is_reported_and_made_again(store, missing, draws):
    shutil.rmtree(store / missing)
    with pytest.warns(
        amagold.SamplingWarning,
        match=rf"damaged draws: {missing}.*it is missing.*the first 0 of 50 are readable",
    ):
        assert amagold.load(store).posterior.sizes["draw"] == 0
    np.testing.assert_array_equal(
        amagold.resume(store, SAMPLER, progress=False).posterior["x"], draws
    )
    assert_no_damage(store)


def test_a_missing_record_of_the_warm_up_is_reported_and_ends_there(store, draws):
    shutil.rmtree(store / "warmup_sample_stats")
    for open_it in (amagold.load, lambda path: amagold.resume(path, SAMPLER, progress=False)):
        with pytest.warns(amagold.SamplingWarning, match="damaged draws: warmup_sample_stats"):
            found = open_it(store)
        np.testing.assert_array_equal(found.posterior["x"], draws)
        assert found.warmup_sample_stats.sizes["draw"] == 0
        found.warmup_sample_stats.load()
    assert_no_damage(store)


def test_deep_json_is_refused(store):
    for file in places(store):
        file.write_text("[" * 100_000 + "]" * 100_000)
    with pytest.raises(ValueError, match="cannot be used"):
        amagold.load(store)


def test_a_link_that_leads_outside_is_refused(store):
    outside = shutil.move(store / "posterior" / "x", store.parent / "outside")
    (store / "posterior" / "x").symlink_to(outside)
    with pytest.raises(ValueError, match="is not a name within the store"):
        amagold.resume(store, SAMPLER, progress=False)


@pytest.mark.parametrize("path", [None, 3, "nowhere"])
def test_what_is_no_path_is_refused(path):
    with pytest.raises(ValueError, match="path must be the folder of a stored run"):
        amagold.load(path)


class Trap:
    """What a stranger would have a pickle do."""

    def __reduce__(self):
        return os.mkdir, ("executed",)


def with_a_pickle_filter(folder):
    """The array as Zarr's format 2 with a filter that unpickles its chunk, which numcodecs before
    0.16.6 obeys.
    """
    (folder / "zarr.json").unlink()
    (folder / ".zarray").write_text(json.dumps(V2))
    for name in ("0.0.0", "0.0", "0"):
        (folder / name).write_bytes(pickle.dumps(Trap()))


@pytest.mark.parametrize(
    "array",
    [
        "posterior/x",
        "sample_stats/energy",
        "posterior/chain",
        "posterior/draw",
        "posterior/x_dim_0",
    ],
)
def test_no_array_of_a_stranger_is_decoded(store, array, draws, monkeypatch):
    """Codecs are not even looked up; with numcodecs before 0.16.6 this one was found, and ran what
    it decoded.
    """
    monkeypatch.chdir(store.parent)
    monkeypatch.setattr(
        "numcodecs.registry.get_codec", lambda *arguments: pytest.fail("a codec was looked up")
    )
    with_a_pickle_filter(store / array)
    with pytest.warns(amagold.SamplingWarning, match="damaged"):
        amagold.load(store).posterior.load()
    assert main(["report", str(store)]) == 0
    np.testing.assert_array_equal(
        amagold.resume(store, SAMPLER, progress=False).posterior["x"], draws
    )
    assert not Path("executed").exists()
    monkeypatch.undo()
    assert_no_damage(store)


def test_a_chunk_that_would_expand_is_refused_before_it_does(store):
    """Two gigabytes of zeros in eight megabytes, with the right checksum; then a header alone that
    promises as much.
    """
    import google_crc32c
    from numcodecs import blosc

    file = store / "posterior/x/c/0/0/0"
    large = blosc.Blosc("lz4", 1, blosc.SHUFFLE, typesize=4).encode(np.zeros(2**28, np.float32))
    promise = chunk.HEADER.pack(2, 1, 0x21, 4, 2**31 - 17, 2**17, 816) + bytes(800)
    for content in (large, promise):
        file.write_bytes(content + chunk.CHECKSUM.pack(google_crc32c.value(content)))
        tracemalloc.start()
        with pytest.warns(amagold.SamplingWarning, match="the chunk of draw 0 is damaged"):
            amagold.load(store)
        assert tracemalloc.get_traced_memory()[1] < 2**26
        tracemalloc.stop()


def test_a_promise_of_another_size_is_refused():
    values = np.arange(100, dtype=np.float32)
    content = chunk.encode(values)
    np.testing.assert_array_equal(chunk.decode(content, (100,), values.dtype), values)
    for shape, dtype in (((99,), "float32"), ((50,), "float64"), ((10**6,), "float32")):
        with pytest.raises(chunk.DamagedChunkError, match=r"it (has|says|is not compressed)"):
            chunk.decode(content, shape, np.dtype(dtype))


def flipped_bytes(file, how_many, seed=0):
    """The file with one byte changed, again and again at other places; then as it was."""
    content, generator = file.read_bytes(), np.random.default_rng(seed)
    for place in generator.permutation(len(content))[:how_many]:
        changed = bytearray(content)
        changed[place] ^= 1 << generator.integers(8)
        file.write_bytes(bytes(changed))
        yield int(place)
    file.write_bytes(content)


BESIDE_THE_DRAWS = (
    "posterior/zarr.json",
    "posterior/x/zarr.json",
    "posterior/chain/zarr.json",
    "sample_stats/n_steps/zarr.json",
    "posterior/chain/c/0",
    "posterior/draw/c/0",
    "posterior/x_dim_0/c/0",
)

NUMBERS = {"chain": [0, 1], "draw": list(range(50)), "x_dim_0": [0, 1]}


@pytest.mark.parametrize("name", BESIDE_THE_DRAWS)
def test_flipped_bytes_beside_the_draws_change_nothing(store, draws, name):
    tries = 0
    whole = json.loads((store / name).read_bytes()) if name.endswith(".json") else None
    for place in flipped_bytes(store / name, 20):
        found = amagold.load(store)
        np.testing.assert_array_equal(found.posterior["x"], draws, err_msg=f"{name} {place}")
        assert {
            axis: numbers.values.tolist() for axis, numbers in found.posterior.coords.items()
        } == NUMBERS
        assert found.sample_stats["n_steps"].values.tolist() == [[4] * 50] * 2
        is_reported = any(
            f"damaged {kind}: {name!r}" in sentence
            for sentence in found.warnings
            for kind in ("metadata", "coordinates")
        )
        assert is_reported or json.loads((store / name).read_bytes()) == whole, f"{name} {place}"
        tries += 1
    assert tries == 20
    (store / name).unlink()
    with pytest.warns(amagold.SamplingWarning, match=f"{name}.*and it is written again"):
        np.testing.assert_array_equal(
            amagold.resume(store, SAMPLER, progress=False).posterior["x"], draws
        )
    assert_no_damage(store)


def test_flipped_bytes_in_the_root_are_found_and_its_copy_is_used(store, draws):
    reported = 0
    whole = json.loads((store / "zarr.json").read_bytes())
    for place in flipped_bytes(store / "zarr.json", 60):
        found = amagold.load(store)
        np.testing.assert_array_equal(found.posterior["x"], draws, err_msg=str(place))
        is_reported = any(
            "damaged metadata" in sentence and "its copy was used" in sentence
            for sentence in found.warnings
        )
        assert is_reported or json.loads((store / "zarr.json").read_bytes()) == whole, place
        reported += is_reported
    assert reported > 30
    (store / "zarr.json").unlink()
    np.testing.assert_array_equal(
        amagold.resume(store, SAMPLER, progress=False).posterior["x"], draws
    )
    assert_no_damage(store)


def json_or_none(file):
    try:
        return json.loads(file.read_bytes())
    except ValueError:
        return None


def test_flipped_bytes_in_a_root_without_copy_end_in_one_sentence(store, draws):
    refused = 0
    places(store)[1].unlink()
    whole = json.loads((store / "zarr.json").read_bytes())
    for _ in flipped_bytes(store / "zarr.json", 60, seed=1):
        if json_or_none(store / "zarr.json") == whole:  # white space for other white space
            np.testing.assert_array_equal(amagold.load(store).posterior["x"], draws)
            continue
        with pytest.raises(
            ValueError,
            match=r"zarr\.json' cannot be used.*; restore it from a backup, or give another path",
        ):
            amagold.load(store)
        refused += 1
    assert refused > 30


def test_a_lost_copy_of_the_root_is_made_again(store):
    places(store)[1].unlink()
    amagold.resume(store, SAMPLER, progress=False)
    assert places(store)[0].read_bytes() == places(store)[1].read_bytes()


LINKS = (
    "posterior/x/c/0/0/0",
    "posterior/x/c",
    "posterior/x/zarr.json",
    "sample_stats",
    ".amagold",
    "zarr.json",
)


@pytest.mark.parametrize("name", LINKS)
def test_no_link_is_followed(store, name):
    outside = shutil.move(store / name, store.parent / "outside")
    (store / name).symlink_to(outside)
    before = outside.read_bytes() if outside.is_file() else sorted(outside.rglob("*"))
    for open_it in (amagold.load, lambda path: amagold.resume(path, SAMPLER, progress=False)):
        with pytest.raises(ValueError, match="is a link"):
            open_it(store)
    assert before == (outside.read_bytes() if outside.is_file() else sorted(outside.rglob("*")))


def as_folder(file):
    file.unlink()
    file.mkdir()
    (file / "more").write_text("something else")


def as_pipe(file):
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize("change", [as_folder, as_pipe])
@pytest.mark.parametrize(
    "name",
    [
        "posterior/x/c/0/0/0",
        "sample_stats/energy/c/0/0",
        "posterior/chain/c/0",
        "posterior/zarr.json",
        "zarr.json",
    ],
)
def test_what_is_no_file_is_damage(store, draws, change, name):
    change(store / name)
    with pytest.warns(amagold.SamplingWarning, match="damaged"):
        found = amagold.load(store)
    assert not np.isnan(found.posterior["x"]).any()
    np.testing.assert_array_equal(
        amagold.resume(store, SAMPLER, progress=False).posterior["x"], draws
    )
    assert_no_damage(store)


@pytest.mark.parametrize("change", [as_folder, as_pipe])
def test_a_checkpoint_that_is_no_file_is_passed_over(store, draws, change):
    change(CheckpointFolder(store / ".amagold").files()[-1])
    (store / ".amagold" / "other.checkpoint").mkdir()
    with pytest.warns(
        amagold.SamplingWarning, match="checkpoint .* is damaged: it is not a file|Is a directory"
    ):
        again = amagold.resume(store, SAMPLER, progress=False)
    np.testing.assert_array_equal(again.posterior["x"], draws)


NOTES = {
    "no steps": lambda notes: notes.pop("num_steps"),
    "steps of another type": lambda notes: notes.update(num_steps="4"),
    "a time that is none": lambda notes: notes.update(sampling_seconds=float("nan")),
    "no end of warm-up": lambda notes: notes.update(warmup_done=None),
}


@pytest.mark.parametrize("change", NOTES)
def test_edited_notes_of_a_checkpoint_are_damage(store, draws, change):
    file = CheckpointFolder(store / ".amagold").files()[-1]
    checkpoint = decode(file.read_bytes())
    NOTES[change](checkpoint.notes)
    file.write_bytes(encode(checkpoint))
    with pytest.warns(amagold.SamplingWarning, match="checkpoint .* is damaged: its .* is "):
        again = amagold.resume(store, SAMPLER, progress=False)
    np.testing.assert_array_equal(again.posterior["x"], draws)


def test_a_store_that_is_moved_away_while_it_is_written(tmp_path):
    path = tmp_path / "run.zarr"
    store = ZarrStore.create(
        path, {"posterior": {"x": Variable((), "float32")}}, {"posterior": 50}, 2, {}
    )
    store.write("posterior", 0, {"x": np.ones((2, 20), np.float32)})
    store.commit({"posterior": 20}, {})
    path.rename(tmp_path / "elsewhere.zarr")
    with pytest.raises(OSError, match="No such file"):
        store.write("posterior", 20, {"x": np.ones((2, 20), np.float32)})
    with pytest.raises(OSError, match="No such file"):
        store.commit({"posterior": 40}, {})
    assert (
        store.length("posterior")
        == ZarrStore(tmp_path / "elsewhere.zarr").length("posterior")
        == 20
    )
    assert not path.exists(), "what was moved away is not made anew"


@pytest.mark.parametrize("path", ["a\0b", "", b"run", 3])
def test_null_characters_in_paths(path):
    with pytest.raises(ValueError, match="path must be the folder of a stored run"):
        amagold.load(path)
    with pytest.raises(ValueError, match="path must be the folder of a stored run"):
        amagold.resume(path, SAMPLER, progress=False)
    with pytest.raises(
        ValueError, match="store must be the path of a folder to make, or None, got"
    ):
        amagold.sample(SAMPLER, init={"x": np.zeros(2)}, store=path, progress=False)


def test_a_label_outside_the_contract_is_not_stored():
    for label in (
        "exact",
        "biased",
        "approximate (confidence, error 0.05, range measured)",
        "approximate (barker, variance 1e-05)",
        MIXED,
    ):
        check_label(label)
    for label in (
        "exact, certified",
        "Exact",
        "approximate",
        "approximate (mine)",
        "exact\n",
        None,
    ):
        with pytest.raises(ValueError, match="label must be 'exact'"):
            check_label(label)
