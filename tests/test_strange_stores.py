"""Stores that were edited, damaged or made up: one sentence, nothing outside touched, nothing executed."""

import json
import shutil

import numpy as np
import pytest

import amagold
from amagold.store.zarr_store import ZarrStore

pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")

SAMPLER = amagold.hmc(amagold.Density(lambda at: -0.5 * (at["x"] @ at["x"])), step_size=0.5, num_steps=4)


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    path = tmp_path_factory.mktemp("original") / "run.zarr"
    amagold.sample(SAMPLER, 50, 20, 2, init={"x": np.zeros(2)}, store=path, progress=False)
    ZarrStore(path).commit({}, {"is_complete": False})
    return path


@pytest.fixture
def store(original, tmp_path):
    return shutil.copytree(original, tmp_path / "run.zarr")


def edit(store, change):
    file = store / "zarr.json"
    document = json.loads(file.read_text())
    change(document, document["attributes"], document["consolidated_metadata"]["metadata"])
    file.write_text(json.dumps(document))


EDITS = {
    "no settings": lambda root, facts, arrays: facts.pop("settings"),
    "an extra setting": lambda root, facts, arrays: facts["settings"].update(more=1),
    "more draws than there is room for": lambda root, facts, arrays: facts["settings"].update(num_samples=500),
    "a setting of another type": lambda root, facts, arrays: facts["settings"].update(thin="2"),
    "no plan": lambda root, facts, arrays: facts.pop("plan"),
    "a plan of another kind": lambda root, facts, arrays: facts["plan"].update(kind="os.system"),
    "facts of another type": lambda root, facts, arrays: root.update(attributes="facts"),
    "a position of another type": lambda root, facts, arrays: facts.update(position="x"),
    "no versions": lambda root, facts, arrays: facts.pop("versions"),
    "no label": lambda root, facts, arrays: facts.pop("label"),
    "a time of another type": lambda root, facts, arrays: facts.update(sampling_time=[1]),
    "no fingerprint": lambda root, facts, arrays: facts.pop("data_fingerprint"),
    "metadata of another type": lambda root, facts, arrays: root["consolidated_metadata"].update(metadata=[1]),
    "an endless length": lambda root, facts, arrays: arrays["posterior/x"].update(shape=[2, 10**12, 2]),
    "an endless draw axis": lambda root, facts, arrays: arrays["posterior/draw"].update(shape=[10**12]),
    "an axis that is not there": lambda root, facts, arrays: arrays["posterior/draw"].update(shape=[]),
    "a name that leads outside": lambda root, facts, arrays: arrays.update({"posterior/../../victim": arrays["posterior/x"]}),
    "a group that leads outside": lambda root, facts, arrays: arrays.update({"../victim/x": arrays["posterior/x"]}),
}


@pytest.mark.parametrize("open_it", [amagold.load, lambda path: amagold.resume(path, SAMPLER, progress=False)], ids=["load", "resume"])
@pytest.mark.parametrize("change", EDITS)
def test_an_edited_description_is_refused_in_one_sentence(store, change, open_it):
    victim = store.parent / "victim"
    shutil.copytree(store / "posterior" / "x", victim)
    chunk = next((victim / "c").rglob("[0-9]*/[0-9]*/[0-9]*"))
    chunk.write_bytes(b"mine")
    edit(store, EDITS[change])
    with pytest.raises(ValueError, match=r"path must be the folder of a run stored by amagold, but what .* says of itself cannot be used"):
        open_it(store)
    assert chunk.read_bytes() == b"mine"


@pytest.mark.parametrize("missing", ["sample_stats", "warmup_sample_stats", "posterior/x"])
def test_a_missing_part_is_said(store, missing):
    shutil.rmtree(store / missing)
    with pytest.raises(ValueError, match="cannot be used"):
        amagold.load(store)


def test_deep_json_is_refused(store):
    (store / "zarr.json").write_text("[" * 100_000 + "]" * 100_000)
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
