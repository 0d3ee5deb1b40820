"""Horseshoe priors beside effects of groups: the density, units and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from amagold import models, priors

ROWS, LEVELS, WIDTH = 60, 5, 3


def columns():
    generator = np.random.default_rng(3)
    x = generator.normal(size=(ROWS, WIDTH)) * [1.0, 10.0, 0.1]
    return x, np.arange(ROWS) % LEVELS, generator


def log_horseshoe(beta, tau, slab):
    """log p(beta | tau), the local scale integrated out numerically."""

    def of(local):
        return stats.norm(0, local * tau).pdf(beta) * stats.halfcauchy.pdf(local)

    # in log local, which is smooth
    found = integrate.quad(lambda at: of(np.exp(at)) * np.exp(at), -25.0, 25.0, limit=500)[0]
    return np.log(found) - 0.5 * (beta / slab) ** 2


@pytest.mark.parametrize("standardize", [False, True])
def test_the_density_is_that_of_the_horseshoe(standardize):
    x, group, generator = columns()
    y = generator.random(ROWS) < 0.5
    given = priors.horseshoe(0.4, slab=2.0)
    target = models.mixed(x, y, {"g": group}, shrinkage=given, standardize=standardize)
    usual = models.mixed(x, y, {"g": group}, standardize=standardize)
    places = [
        {
            name: jnp.asarray(values + 0.3 * generator.normal(size=np.shape(values)), jnp.float32)
            for name, values in target.init.items()
        }
        for _ in range(2)
    ]

    def expected(place):
        shown = target.transform(jax.tree.map(np.asarray, place))
        tau = float(shown["tau"][0])
        total = sum(log_horseshoe(float(beta), tau, 2.0) for beta in shown["theta"][1:])
        # half-Cauchy and the Jacobian of log tau; the others' priors as they were
        total += np.log(tau) - np.log1p((tau / 0.4) ** 2)
        others = {name: values for name, values in place.items() if name != "tau"}
        usually = usual.log_prior.fixed
        own = (others["theta"][1:] - usually.center[1:]) / usually.scale[1:]
        return total + float(usual.log_prior(others)) + 0.5 * float(jnp.sum(own**2))

    apart = float(target.log_prior(places[1])) - float(target.log_prior(places[0]))
    np.testing.assert_allclose(apart, expected(places[1]) - expected(places[0]), rtol=1e-3)


@pytest.mark.parametrize("family", ["logistic", "linear"])
def test_reported_positions_come_back(family):
    x, group, generator = columns()
    y = generator.normal(size=ROWS) if family == "linear" else generator.random(ROWS) < 0.5
    target = models.mixed(x, y, {"g": group}, family, shrinkage=priors.horseshoe(0.1))
    place = {name: np.asarray(values) + np.float32(0.1) for name, values in target.init.items()}
    back = target.transform.inverse(target.transform(place))
    assert back.keys() == place.keys()
    for name, values in place.items():
        np.testing.assert_allclose(back[name], values, rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize(
    ("changed", "told"),
    [
        ({"shrinkage": priors.normal(0, 1)}, "shrinkage must be amagold.priors.horseshoe"),
        ({"shrinkage": 0.1}, "shrinkage must be amagold.priors.horseshoe"),
        ({"X": None}, "X must have columns whose coefficients shrinkage speaks of"),
        ({"groups": {"tau": np.arange(ROWS) % LEVELS}}, "groups must not be called 'tau'"),
    ],
)
def test_what_is_refused(changed, told):
    x, group, generator = columns()
    y = generator.random(ROWS) < 0.5
    given = {"X": x, "y": y, "groups": {"g": group}, "shrinkage": priors.horseshoe(0.1)}
    with pytest.raises(ValueError, match=told):
        models.mixed(**(given | changed))
