"""How far a Gaussian at the mode is off: not at all where the posterior is one, far where events
are rare.
"""

import numpy as np
import pytest
import xarray

import amagold
from amagold.diagnose._laplace_gap import laplace_gap
from amagold.mode._curvature import curvature_at
from amagold.mode._mode_search import find_mode

SETTINGS = {"num_samples": 2000, "num_warmup": 500, "progress": False}


def rare():
    X = np.random.default_rng(1).normal(size=(300, 1))
    return amagold.models.logistic(X, np.arange(300) < 2)


def test_the_gaussian_itself_has_no_gap_and_others_have():
    target = rare()
    mode = find_mode(target, target.init)
    factor = curvature_at(target, mode.position).factor
    noise = np.random.default_rng(2).normal(size=(4, 1000, 2)) @ factor.T
    draws = noise + np.asarray(mode.position)

    def gap(changed):
        return laplace_gap(xarray.Dataset({"theta": (("chain", "draw", "at"), changed)}), target)

    found = gap(draws)
    assert (found["mean_shift"].abs() < 5 * found["error"]).all()
    assert ((found["sd_ratio"] - 1).abs() < 5 * found["sd_error"]).all()
    for tail in ("below", "above"):
        assert ((found[tail] - 0.05).abs() < 5 * found["tail_error"]).all()
    assert found.attrs["verdict"].startswith("You did not need MCMC")
    sd = np.sqrt(np.sum(factor**2, axis=1))
    moved = gap(draws + 0.5 * sd)
    np.testing.assert_allclose(moved["mean_shift"], 0.5, atol=0.1)
    assert moved.attrs["verdict"].startswith("You needed MCMC")
    wide = gap(np.asarray(mode.position) + 1.5 * noise)
    np.testing.assert_allclose(wide["sd_ratio"], 1.5, atol=0.1)
    assert (wide[["below", "above"]] > 0.1).all(axis=None)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_a_gaussian_posterior_has_no_gap_and_rare_events_have():
    generator = np.random.default_rng(0)
    X = generator.normal(size=(200, 2))
    y = X @ [1.0, -2.0] + generator.normal(size=200)
    known = amagold.models.linear(X, y, noise_scale=1.0)
    verdict = amagold.sample(known, **SETTINGS).laplace_gap().attrs["verdict"]
    assert "did not need MCMC" in verdict
    found = amagold.sample(rare(), **SETTINGS).laplace_gap()
    assert found["mean_shift"].abs().max() > 0.4
    assert found["below"].max() > 0.1
    assert "You needed MCMC" in found.attrs["verdict"]
