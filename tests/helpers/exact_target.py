"""A small posterior that is skewed and correlated, whose minibatch gradients are noisy, and whose
exact draws are known.
"""

from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
from scipy.optimize import minimize

import amagold

PREDICTORS = np.array(
    [
        [1.0, -1.2],
        [1.0, -0.7],
        [1.0, -0.2],
        [1.0, 0.1],
        [1.0, 0.5],
        [1.0, 0.9],
        [1.0, 1.3],
        [1.0, 1.6],
    ],
    np.float32,
)
COUNTS = np.array([0.0, 1.0, 0.0, 2.0, 1.0, 1.0, 4.0, 3.0], np.float32)
NUM_EXAMPLES = len(COUNTS)


def log_likelihood(position, example):
    """Poisson regression: y (x . theta) - exp(x . theta)."""
    predictors, count = example
    rate = jnp.dot(predictors, position)
    return count * rate - jnp.exp(rate)


def log_prior(position):
    return -0.5 * jnp.sum(position**2)


def target(domain=None):
    return amagold.Posterior(log_likelihood, log_prior, (PREDICTORS, COUNTS), domain)


def upper_half(position):
    return position[1] > 0.3


@cache
def exact_draws(num_draws, inside_upper_half=False):
    """Independent draws by rejection from the prior: exact, with no grid and no chain."""

    def likelihood(positions):
        rate = positions @ PREDICTORS.T.astype(np.float64)
        return (rate * COUNTS - np.exp(rate)).sum(axis=-1)

    best = -minimize(lambda position: -likelihood(position), np.zeros(2)).fun + 1e-6
    generator = np.random.default_rng(20200611)
    kept, count = [], 0
    while count < num_draws:
        proposals = generator.normal(size=(1_000_000, 2))
        accepted = np.log(generator.uniform(size=len(proposals))) < likelihood(proposals) - best
        if inside_upper_half:
            accepted &= proposals[:, 1] > 0.3
        kept.append(proposals[accepted])
        count += accepted.sum()
    return np.concatenate(kept)[:num_draws].astype(np.float32)


def features(position):
    """Functions whose means say whether a distribution moved: first and second moments, skewness,
    and a tail.
    """
    a, b = position[..., 0], position[..., 1]
    return jnp.stack([a, b, a * a, b * b, a * b, a**3, b**3, jnp.tanh(3.0 * a) * b], axis=-1)


def move(sampler, positions, num_transitions, seed):
    """Apply transitions to exact draws, one chain per draw.

    Returns the states after one transition, the states after all of them, and the infos of the
    first.
    """
    start_key, run_key = jax.random.split(jax.random.key(seed))
    states = jax.jit(jax.vmap(sampler.init))(positions, jax.random.split(start_key, len(positions)))

    @jax.jit
    def all_transitions(sampler, states, keys):
        def transition(states, key):
            return jax.vmap(sampler.step)(jax.random.split(key, len(positions)), states)

        first, infos = transition(states, keys[0])
        return (
            first,
            jax.lax.scan(lambda states, key: (transition(states, key)[0], None), first, keys[1:])[
                0
            ],
            infos,
        )

    return all_transitions(sampler, states, jax.random.split(run_key, num_transitions))
