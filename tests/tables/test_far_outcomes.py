"""Outcomes far from zero, as a pressure in pascals: what follows a fit has their digits too."""

import numpy as np
import pandas
import pytest

import amagold

ORIGIN, UNIT = 101_325.0, 0.01
GIVEN = {"num_samples": 100, "num_warmup": 100, "num_chains": 2, "progress": False}


def table():
    generator = np.random.default_rng(4)
    group, x = np.arange(160) % 8, generator.normal(size=160)
    y = 0.5 * x + generator.normal(size=8)[group] + generator.normal(size=160)
    return pandas.DataFrame({"x": x, "g": group, "near": y, "far": ORIGIN + UNIT * y})


@pytest.fixture(scope="module", params=["linear", "robust"])
def runs(request):
    """Of outcomes near zero and far from it, whose draws are the same but for their units."""
    groups = " + (1 | g)" if request.param == "linear" else ""
    with pytest.warns(amagold.SamplingWarning):  # so short a run
        return [
            amagold.fit(f"{name} ~ x{groups}", table(), request.param, **GIVEN)
            for name in ("near", "far")
        ]


def test_predictions_have_their_digits(runs):
    for of in ("mean", "outcome"):
        near, far = (run.predict(table(), of=of, draws=3) for run in runs)
        # draws of outcomes need not be the same ones
        close = 0.02 if of == "mean" else 1.0
        for name in ("mean", "lower", "upper"):
            assert np.abs((far[name] - ORIGIN) / UNIT - near[name]).max() < close
    assert len(np.unique(far["draw_0"])) == len(far)


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_rows_that_are_left_out_have_theirs(runs):
    near, far = (run.loo() for run in runs)
    unit = -np.log(UNIT) * len(table())
    assert abs(far.elpd - unit - near.elpd) < 1.0
    assert abs(far.p - near.p) < 1.0


def test_effects_and_checks_have_theirs(runs):
    near, far = (run.contrast("x", 0.0, 1.0) for run in runs)
    np.testing.assert_allclose(far["mean"][0], far["mean"][1], rtol=1e-6)
    np.testing.assert_allclose(far["mean"] / UNIT, near["mean"], rtol=0.05)
    np.testing.assert_allclose(far["sd"] / UNIT, near["sd"], rtol=0.1)
    near, far = (run.effects() for run in runs)
    np.testing.assert_allclose(far["mean"] / UNIT, near["mean"], rtol=0.05)
    near, far = (run.predictive_check().calibration for run in runs)
    for name in ("predicted", "observed", "lower", "upper"):
        assert np.abs((far[name] - ORIGIN) / UNIT - near[name]).max() < 0.5
