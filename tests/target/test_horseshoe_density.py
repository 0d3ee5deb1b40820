"""The horseshoe's density against quadrature over its scales."""

import itertools

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import integrate, stats

from amagold.target._horseshoe import Horseshoe

SCALE = 0.7


def prior(size=1, slab=None, units=1.0):
    return Horseshoe(
        jnp.arange(size),
        jnp.zeros(size, jnp.int32),
        jnp.full(size, units, jnp.float32),
        jnp.array([SCALE], jnp.float32),
        jnp.array([0.0 if slab is None else slab**-2.0], jnp.float32),
        1,
    )


def log_joint(beta, tau, slab=None):
    """log p(beta, log tau), with every lambda integrated out numerically."""
    total = stats.halfcauchy(scale=SCALE).logpdf(tau) + np.log(tau)
    for one in beta:

        def of_log_lambda(k, one=one):
            scale = np.exp(k)
            return stats.norm.pdf(one, 0.0, scale * tau) * stats.halfcauchy.pdf(scale) * scale

        middle = np.log(abs(one) / tau)
        ends = (middle - 40.0, middle - 1.0, middle + 1.0, middle + 40.0)
        pairs = itertools.pairwise(ends)
        parts = [integrate.quad(of_log_lambda, *pair, limit=400)[0] for pair in pairs]
        total += np.log(sum(parts))
        total -= 0.0 if slab is None else 0.5 * (one / slab) ** 2
    return total


@pytest.mark.parametrize("slab", [None, 1.5])
@pytest.mark.parametrize("units", [1.0, 0.2])
def test_density_is_that_of_the_scales_integrated_out(slab, units):
    own = prior(2, slab, units)
    cases = [((0.3, -2.0), 0.4), ((1e-3, 0.5), 0.1), ((5.0, 0.01), 3.0)]
    found, wanted = [], []
    for beta, tau in cases:
        flat = np.array([*np.array(beta) / units, np.log(tau)], np.float32)
        found.append(float(own(flat)))
        wanted.append(log_joint(beta, tau, slab))
    np.testing.assert_allclose(np.diff(found), np.diff(wanted), atol=1e-4)
    # the Jacobian of log tau would be seen if it were left out
    assert np.abs(np.diff([np.log(tau) for _, tau in cases])).min() > 0.1


@pytest.mark.slow
def test_local_scales_have_their_conditional_distribution():
    """1 / lambda^2 given beta and tau, against its distribution function by quadrature."""
    beta, tau = 0.3, 0.5
    share = 1.0 - (np.arange(200) + 0.5) / 200
    own = prior()
    at, log_tau = jnp.array([beta]), jnp.log(jnp.array([tau]))
    found = np.array([float(own.precisions(at, log_tau, jnp.array([one]))[0]) for one in share])
    inverse = found * tau**2
    x = 0.5 * (beta / tau) ** 2

    def density(u):
        return np.exp(-x * u) / (1.0 + u)

    whole = integrate.quad(density, 0.0, np.inf)[0]
    reached = [integrate.quad(density, 0.0, u)[0] / whole for u in inverse]
    np.testing.assert_allclose(reached, 1.0 - share, atol=1e-5)


def test_a_slab_is_a_precision_more():
    plain, held = prior(), prior(slab=0.5)
    given = (jnp.array([0.3]), jnp.array([-1.0]), jnp.array([0.4]))
    assert float(held.precisions(*given)[0] - plain.precisions(*given)[0]) == pytest.approx(4.0)
