"""SGHMC with a fresh momentum every T steps is biased however small its steps: its variance tends
to T / (T - 1).
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import amagold


def drift_and_spread(make, num_steps, step_size):
    """One transition on a standard normal is theta' = a theta + b r; both follow from two starts
    and the same momentum.
    """
    target = amagold.Density(lambda theta: -0.5 * theta**2)
    sampler = make(
        target,
        step_size=step_size,
        friction=0.0,
        num_steps=num_steps,
        gradient=amagold.gradients.full(),
    )
    key = jax.random.key(0)
    momentum = float(sampler.draw(key, jnp.float32(0.0)).momentum)
    ends = [float(sampler.step(key, sampler.init(start))[0].position) for start in (0.0, 1.0)]
    return ends[1] - ends[0], ends[0] / momentum


@pytest.mark.parametrize("num_steps", [5, 10])
def test_the_limit_of_small_steps(num_steps):
    drift, spread = drift_and_spread(amagold.sghmc, num_steps, 0.05)
    # the stationary variance of theta' = a theta + b r is b^2 / (1 - a^2)
    np.testing.assert_allclose(spread**2 / (1.0 - drift**2), num_steps / (num_steps - 1), rtol=0.02)


def test_the_time_symmetric_step_has_no_such_bias():
    never = amagold.acceptance.never_reject()
    drift, spread = drift_and_spread(
        lambda *given, **named: amagold.amagold(*given, **named, acceptance=never), 10, 0.05
    )
    np.testing.assert_allclose(spread**2 / (1.0 - drift**2), 1.0, rtol=0.005)
