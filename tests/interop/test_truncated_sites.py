"""NumPyro's truncated distributions: the same densities without a switch, and few rows a test."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

import amagold

pytest.importorskip("numpyro")
import numpyro
from numpyro import distributions as dist

from amagold.interop._truncated_sites import without_switches

LOW, HIGH = 0.0, 1.5
PLACES = np.linspace(-3.0, 4.5, 16)
BELOW, ABOVE = LOW - PLACES, HIGH - PLACES  # in units of the scale, which is one
RIGHT = dist.RightTruncatedDistribution(dist.Normal(jnp.zeros(4), 1.0), HIGH)


def numbers_between(low, high, size=10_000):
    random = np.random.default_rng(0)
    X = random.normal(size=(size, 2)).astype(np.float32)
    middle = X @ np.array([0.5, -0.3])
    y = stats.truncnorm.rvs(
        (low - middle) / 0.8, (high - middle) / 0.8, middle, 0.8, random_state=random
    )
    return X, y.astype(np.float32)


def model(X, y, low=None, high=None):
    b = numpyro.sample("b", dist.Normal(0.0, 1.0).expand([2]).to_event(1))
    scale = numpyro.sample("scale", dist.HalfNormal(1.0))
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.TruncatedNormal(X @ b, scale, low=low, high=high), obs=y)


@pytest.mark.parametrize(
    ("high", "most"), [(None, 20.0), pytest.param(HIGH, 2_000.0, marks=pytest.mark.slow)]
)
def test_tests_look_at_few_rows(high, most):
    X, y = numbers_between(LOW, np.inf if high is None else high)
    target = amagold.from_numpyro(model, X, y, low=LOW, high=high)
    test = amagold.acceptance.tuna().bind(target)
    assert float(test.typical) < most


@pytest.mark.slow
def test_transitions_look_at_few_rows():
    X, y = numbers_between(LOW, np.inf)
    target = amagold.from_numpyro(model, X, y, low=LOW)
    run = amagold.sample(target, 200, 200, num_chains=4, progress=False)
    assert run.plan.test == "tuna"
    assert float(run.sample_stats["num_energy_examples"].mean()) < 50.0


@pytest.mark.parametrize(
    ("base", "high", "exact"),
    [
        (dist.Normal, None, lambda y: stats.truncnorm.logpdf(y, BELOW, np.inf, PLACES)),
        (
            dist.Normal,
            HIGH,
            lambda y: stats.truncnorm.logpdf(y, BELOW, ABOVE, PLACES),
        ),
        (
            dist.Logistic,
            None,
            lambda y: stats.logistic.logpdf(y, PLACES) - stats.logistic.logsf(LOW, PLACES),
        ),
    ],
    ids=["below", "both", "logistic"],
)
def test_densities_are_the_same(base, high, exact):
    given = dist.TruncatedDistribution(base(jnp.asarray(PLACES), 1.0), low=LOW, high=high)
    smooth = without_switches(given)
    assert type(smooth) is not type(given)
    y = np.linspace(0.1, 1.4, len(PLACES)).astype(np.float32)
    np.testing.assert_allclose(smooth.log_prob(y), exact(y), rtol=1e-4, atol=1e-4)
    # NumPyro's own loses digits between limits that lie below
    np.testing.assert_allclose(given.log_prob(y), smooth.log_prob(y), rtol=1e-2, atol=5e-2)


def test_they_are_found_within_others():
    below = dist.TruncatedNormal(jnp.array([-0.5, 0.4]), 1.0, low=0.0)
    y = jnp.array([0.3, 0.8])
    shares = dist.Categorical(jnp.array([0.4, 0.6]))
    parts = [dist.TruncatedNormal(place, 1.0, low=0.0) for place in (-0.5, 0.4)]
    around = {
        "masked": below.mask(jnp.array([True, False])),
        "event": below.to_event(1),
        "expanded": below.expand([3, 2]),
        "mixture": dist.MixtureGeneral(shares, parts, support=dist.constraints.positive),
    }
    for name, fn in around.items():
        smooth = without_switches(fn)
        np.testing.assert_allclose(smooth.log_prob(y), fn.log_prob(y), rtol=1e-5, err_msg=name)
        program = str(jax.make_jaxpr(smooth.log_prob)(y))
        assert "log_ndtr" in program, name
    assert without_switches(RIGHT) is RIGHT


def test_outcomes_outside_the_limits_stay_impossible():
    for checks in (True, False):
        given = dist.LeftTruncatedDistribution(dist.Normal(0.5, 1.0), 0.0, validate_args=checks)
        smooth = without_switches(given)
        found, wanted = (jax.jit(fn.log_prob)(-1.0) for fn in (smooth, given))
        np.testing.assert_allclose(found, wanted, rtol=1e-5)
        assert np.isneginf(found) == checks
