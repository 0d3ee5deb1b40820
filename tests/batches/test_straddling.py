"""An epoch that runs on over trajectories is not exact; the same stream reversed by a fair
coin is.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from broken_samplers import FixedOrder
from false_alarms import PLANTED, worst

import amagold
from amagold import gradients

NUM_CHAINS, NUM_TRANSITIONS, NUM_STEPS, NUM_EXAMPLES = 500_000, 18, 2, 3
TILTS = np.array([4.0, -2.0, -2.0], np.float32)
WEIGHTS = np.array([2.0, 0.1, 0.1], np.float32)


def log_likelihood(position, example):
    """Three examples that pull in different directions, so that the order in which they come
    matters.
    """
    tilt, weight = example
    return tilt * position - weight * jnp.exp(position)


def log_prior(position):
    return -0.5 * position**2


def exact_draws():
    """By rejection from the prior: the tilts sum to zero, so the likelihood is exp(-sum(WEIGHTS)
    exp(theta)) < 1.
    """
    generator = np.random.default_rng(7)
    proposals = generator.normal(size=8 * NUM_CHAINS)
    kept = np.log(generator.uniform(size=proposals.size)) < -WEIGHTS.sum() * np.exp(proposals)
    assert kept.sum() > NUM_CHAINS
    return proposals[kept][:NUM_CHAINS].astype(np.float32)


def features(position):
    return np.stack([position, position**2, position**3, np.tanh(2.0 * position)], axis=-1)


def move(draws, plan, resample_momentum):
    """Feed one unbroken stream of shuffled epochs of three batches to trajectories of two."""
    target = amagold.Posterior(log_likelihood, log_prior, (TILTS, WEIGHTS))
    settings = dict(
        step_size=0.3, friction=0.2, num_steps=NUM_STEPS, resample_momentum=resample_momentum
    )
    sampler = amagold.amagold(target, gradient=gradients.minibatch(1, plan), **settings)
    num_epochs = NUM_TRANSITIONS * NUM_STEPS // NUM_EXAMPLES

    def chain(position, start_key, run_key, stream_key):
        epochs = [
            jax.random.permutation(key, NUM_EXAMPLES)
            for key in jax.random.split(stream_key, num_epochs)
        ]
        stream = jnp.concatenate(epochs).reshape(NUM_TRANSITIONS, NUM_STEPS, 1)

        def transition(state, step):
            key, numbers = step
            randomness = sampler.draw(key, position)
            batches = jax.tree.map(lambda leaf: leaf[numbers], target.data)
            rows = sampler.gather(randomness, batches) if plan == "external" else batches
            return sampler.advance(state, randomness, rows)

        keys = jax.random.split(run_key, NUM_TRANSITIONS)
        return jax.lax.scan(transition, sampler.init(position, start_key), (keys, stream))[
            0
        ].position

    keys = [jax.random.split(key, len(draws)) for key in jax.random.split(jax.random.key(3), 3)]
    return np.asarray(jax.jit(jax.vmap(chain))(draws, *keys))


@pytest.mark.slow  # in `make test` the broken samplers hold a fixed order of batches
@pytest.mark.parametrize("resample_momentum", [True, False])
def test_straddling_epochs_are_seen_and_the_coin_mends_them(resample_momentum):
    draws = exact_draws()
    broken = features(move(draws, FixedOrder(), resample_momentum)) - features(draws)
    mended = features(move(draws, "external", resample_momentum)) - features(draws)
    assert worst(broken) > PLANTED
    assert worst(mended) < 1.0
