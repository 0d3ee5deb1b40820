"""The paper's double well at the authors' setting: step 0.25, friction 0.25, T = 10, 10^5 draws."""

import jax
import numpy as np
import pytest
from false_alarms import threshold
from scipy.integrate import quad

import amagold
from amagold.models import double_well

NUM_CHAINS, NUM_DRAWS = 20, 5_000


def energy(theta):
    return (theta + 4) * (theta + 1) * (theta - 1) * (theta - 3) / 14 + 0.5


def truth():
    mass, first, second = (
        quad(lambda at, k=k: at**k * np.exp(-energy(at)), -10, 10)[0] for k in range(3)
    )
    return first / mass, second / mass - (first / mass) ** 2


def run(make):
    sampler = make(
        double_well(),
        step_size=0.25,
        friction=0.25,
        num_steps=10,
        gradient=amagold.gradients.noisy(1.0),
    )
    return amagold.run_chains(
        sampler, jax.random.key(8), np.linspace(-4.0, 3.0, NUM_CHAINS), NUM_DRAWS, num_burn_in=500
    )


@pytest.mark.slow
def test_amagold_is_right():
    draws = run(amagold.amagold)
    mean, variance = truth()
    np.testing.assert_allclose([mean, variance], [-2.14, 2.9], atol=0.05)
    np.testing.assert_allclose(draws.info.acceptance_rate.mean(), 0.724, atol=0.005)
    # chains are independent, so the spread of their means is the Monte Carlo error
    for found, wanted in ((draws.position, mean), ((draws.position - mean) ** 2, variance)):
        by_chain = found.mean(axis=1)
        error = by_chain.std(ddof=1) / np.sqrt(NUM_CHAINS)
        assert abs(by_chain.mean() - wanted) < threshold() * error
        assert error < 0.2


@pytest.mark.slow
def test_sghmc_is_visibly_biased():
    draws = run(amagold.sghmc)
    _, variance = truth()
    # the authors' own run: 3.42
    assert draws.position.var() > variance + 0.3
    assert draws.info.label == "biased"
