"""Draws under given priors against the posterior by quadrature, where a kink or a heavy tail
matters: the data say as much as the prior does.
"""

import numpy as np
import pytest
from scipy import stats

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")

from false_alarms import PLANTED, threshold  # noqa: E402

import amagold  # noqa: E402
from amagold import priors  # noqa: E402

GRID = np.linspace(-3.0, 4.0, 20_001)
CASES = {
    "laplace": (priors.laplace(0.0, 0.15), stats.laplace(0.0, 0.15)),
    "student_t": (priors.student_t(2, 1.0, 0.1), stats.t(2, 1.0, 0.1)),
    "normal": (priors.normal(1.0, 0.3), stats.norm(1.0, 0.3)),
}


def table():
    generator = np.random.default_rng(5)
    x = generator.normal(size=60)
    return pandas.DataFrame({"x": x, "y": generator.random(60) < 1 / (1 + np.exp(-0.4 * x))})


def moments(log_prior):
    """Mean, mean square and the share above zero, by quadrature."""
    x, sign = table().x.to_numpy(), np.where(table().y, 1.0, -1.0)
    log_density = log_prior(GRID) - np.logaddexp(0.0, -sign * x * GRID[:, None]).sum(axis=1)
    weights = np.exp(log_density - log_density.max())
    weights /= weights.sum()
    return np.array([weights @ GRID, weights @ GRID**2, weights @ (GRID > 0)])


def deviation(draws, wanted):
    """The largest, as a share of its threshold; draws of one chain follow each other."""
    features = np.stack([draws, draws**2, draws > 0], axis=-1)
    means = features.reshape(-1, 50, 3).mean(axis=1)
    error = means.std(axis=0, ddof=1) / np.sqrt(len(means))
    return float(np.max(np.abs(features.mean(axis=(0, 1)) - wanted) / error) / threshold(3))


@pytest.mark.slow
@pytest.mark.parametrize("name", CASES)
def test_draws_are_those_of_the_posterior(name):
    prior, truth = CASES[name]
    run = amagold.fit("y ~ 0 + x", table(), priors={"x": prior}, num_samples=20_000, progress=False)
    draws = run.posterior["x"].values
    assert run.label == "exact"
    assert deviation(draws, moments(truth.logpdf)) < 1.0
    # the smooth prior that guides the mode, and one of twice the width, would be seen
    wrong = stats.norm(prior.location, 2 * prior.scale).logpdf
    assert deviation(draws, moments(wrong)) > PLANTED
    if name == "laplace":
        smooth = moments(lambda at: -np.sqrt(1 + (at / prior.scale) ** 2))
        assert deviation(draws, smooth) > PLANTED
