"""The demo runs whole at small sizes, and says what is missing before it works."""

import json
import sys
import warnings

import jax
import numpy as np
import pytest
from matplotlib.image import imread

import amagold
import amagold_lab.demo
from amagold.models._double_well import double_well_density, double_well_moments
from amagold_lab.demo import demo_heart
from amagold_lab.demo.demo_settings import DemoSettings, Sizes

SMALL = DemoSettings(double_well=Sizes(200, 100, 200, thin=5), heart=Sizes(20, 20, 50))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    # nearly all of the time here is compilation
    jax.config.update("jax_disable_most_optimizations", True)
    try:
        with warnings.catch_warnings():
            # so few draws deserve their warnings
            warnings.simplefilter("ignore", amagold.SamplingWarning)
            amagold_lab.demo.run(folder, seed=1, settings=SMALL)
    finally:
        jax.config.update("jax_disable_most_optimizations", False)
    return folder


@pytest.mark.parametrize("name", ["double-well.png", "heart.png", "run.png"])
def test_pictures_are_drawn(folder, name):
    picture = imread(folder / name)
    assert picture.shape[1] == 2000
    assert picture[..., :3].std() > 0.05
    assert len(np.unique(picture[::5, ::5, 0])) > 50


def test_nothing_half_written_stays(folder):
    assert sorted(path.name for path in folder.iterdir()) == [
        "demo.json",
        "double-well.png",
        "heart.png",
        "run.png",
    ]


def test_amagold_is_nearer_the_double_well_than_sghmc(folder):
    runs = json.loads((folder / "demo.json").read_text())["double_well"]["runs"]
    distance = {run["sampler"]: run["symmetric_kl"] for run in runs if run["step_size"] == 0.25}
    assert distance["AMAGOLD"] < 0.5 * distance["SGHMC"]
    assert {run["sampler"]: run["label"] for run in runs} == {"AMAGOLD": "exact", "SGHMC": "biased"}


def test_amagold_is_nearer_the_heart_posterior_than_sghmc(folder):
    samplers = json.loads((folder / "demo.json").read_text())["heart"]["samplers"]
    assert samplers["AMAGOLD"]["worst_sd_error"] < samplers["SGHMC"]["worst_sd_error"]
    assert samplers[demo_heart.TRUTH]["label"] == samplers["AMAGOLD"]["label"] == "exact"
    assert samplers["AMAGOLD"]["acceptance"] > 0.3


def test_missing_matplotlib_is_said_before_sampling(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setattr(
        amagold_lab.demo.demo_double_well, "sample", lambda *_: pytest.fail("sampling began")
    )
    with pytest.raises(ValueError, match=r"pip install 'amagold\[plot\]'"):
        amagold_lab.demo.run(tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_output_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "taken").write_text("mine")
    with pytest.raises(ValueError, match="output must be a folder"):
        amagold_lab.demo.run(tmp_path / "taken")


def test_double_well_quadrature():
    grid = np.linspace(-8.0, 8.0, 4001)
    density = double_well_density(grid)
    step = grid[1] - grid[0]
    assert density.sum() * step == pytest.approx(1.0, abs=1e-9)
    moments = double_well_moments()
    assert (grid * density).sum() * step == pytest.approx(moments.mean, abs=1e-9)
    assert ((grid - moments.mean) ** 2 * density).sum() * step == pytest.approx(
        moments.variance, abs=1e-9
    )
