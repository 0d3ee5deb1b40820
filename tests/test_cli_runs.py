"""`amagold resume RUN` goes on with a run that was stopped; `amagold report RUN` says what it found."""

import numpy as np
import pytest

import amagold
from amagold.cli import main
from amagold.store.zarr_store import PRIVATE

pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")

MODEL = """
import amagold

def make():
    return amagold.amagold(amagold.models.double_well(), step_size=0.2)

table = amagold.datasets.heart()
"""


@pytest.fixture
def short_chunks(monkeypatch):
    monkeypatch.setattr("amagold.run.chunks.MAX_CHUNK", 100)


def logistic():
    table = amagold.datasets.heart()
    return amagold.models.logistic(table.X, table.y, prior_scale=2.0)


@pytest.mark.parametrize("target", [amagold.models.double_well, pytest.param(logistic, marks=pytest.mark.slow)])
def test_a_ready_made_model_needs_no_code(tmp_path, short_chunks, capsys, target):
    path = tmp_path / "run.zarr"
    partial = amagold.sample(target(), 1_000, 40, 2, store=path, progress=False, max_time=1e-6)
    assert partial.is_partial
    assert main(["resume", str(path)]) == 0
    assert "2 chains x 1000 draws, exact" in capsys.readouterr().out
    whole = amagold.sample(target(), 1_000, 40, 2, progress=False)
    np.testing.assert_array_equal(amagold.load(path).posterior["theta"], whole.posterior["theta"])


def test_a_stored_run_is_reported(tmp_path, capsys):
    path, picture = tmp_path / "run.zarr", tmp_path / "run.png"
    amagold.sample(amagold.models.double_well(), 100, 40, 2, store=path, progress=False)
    assert main(["report", str(path), "--picture", str(picture)]) == 0
    printed = capsys.readouterr().out
    for word in ("Gradient: ", "2 chains x 100 draws, exact", "ess_bulk", "Written to"):
        assert word in printed
    assert picture.stat().st_size > 10_000
    assert main(["report", str(path), "--picture", "run.jpg"]) == 2
    assert "picture must be a file that ends in .png" in capsys.readouterr().err


def test_a_model_of_the_users_own_is_named(tmp_path, short_chunks, capsys, monkeypatch):
    (tmp_path / "my_model.py").write_text(MODEL)
    monkeypatch.chdir(tmp_path)
    sampler = amagold.amagold(amagold.models.double_well(), step_size=0.2)
    amagold.sample(sampler, 1_000, 40, 2, init=0.0, store="run.zarr", progress=False, max_time=1e-6)
    for options, sentence in (
        ([], "target must be named for a model of your own; give --target MODULE:NAME"),
        (["--target", "my_model"], "target must be MODULE:NAME, got 'my_model'"),
        (["--target", "no_model:make"], "target must name a module that can be imported, got 'no_model'"),
        (["--target", "my_model:mace"], "target must name something in 'my_model', but it has no 'mace'"),
        (["--target", "my_model:table"], "target_or_sampler must be an amagold.Posterior"),
    ):
        assert main(["resume", "run.zarr", *options]) == 2
        assert sentence in capsys.readouterr().err
    assert main(["resume", "run.zarr", "--target", "my_model:make", "--max-time", "100"]) == 0
    assert not amagold.load("run.zarr").is_partial


def test_what_cannot_be_resumed_is_said(tmp_path, capsys):
    assert main(["resume", str(tmp_path / "nothing")]) == 2
    assert "path must be the folder of a stored run" in capsys.readouterr().err
    path = tmp_path / "run.zarr"
    amagold.sample(amagold.models.double_well(), 10, 10, 2, store=path, progress=False, max_time=1e-6)
    file = path / PRIVATE / "model"
    file.write_bytes(file.read_bytes()[:-3])
    assert main(["resume", str(path)]) == 2
    assert "is damaged: its checksum does not match; name it with --target" in capsys.readouterr().err
