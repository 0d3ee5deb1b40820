"""The log ratio is the one that eq. 3 and eq. 6 give, computed by brute force from path densities
in float64.
"""

import hypothesis.strategies as some
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from scipy.stats import multivariate_normal

import amagold
from amagold import acceptance, gradients

DIMENSION, NUM_EXAMPLES, BATCH_SIZE = 2, 7, 2


def log_likelihood(position, example):
    predictors, outcome = example
    return -jnp.log1p(jnp.exp(-outcome * jnp.dot(predictors, position)))


def log_prior(position):
    return -0.3 * jnp.sum(position**2) + 0.1 * position[0]


def problem(seed):
    generator = np.random.default_rng(seed)
    data = (
        generator.normal(size=(NUM_EXAMPLES, DIMENSION)),
        generator.choice([-1.0, 1.0], size=NUM_EXAMPLES),
    )
    factor = generator.normal(size=(DIMENSION, DIMENSION))
    return generator, data, factor @ factor.T + 0.5 * np.eye(DIMENSION)


@jax.jit
def draw(sampler, key, position):
    return sampler.draw(key, position)


@jax.jit
def advance(sampler, state, randomness):
    return sampler.advance(state, randomness, sampler.gather(randomness))[1]


def log_density(data, position):
    predictors, outcomes = data
    prior = -0.3 * np.sum(position**2) + 0.1 * position[0]
    return prior - np.sum(np.log1p(np.exp(-outcomes * (predictors @ position))))


def batch_gradient(data, position, rows):
    predictors, outcomes = data[0][rows], data[1][rows]
    weights = outcomes / (1.0 + np.exp(outcomes * (predictors @ position)))
    return 0.6 * position - np.array([0.1, 0.0]) - NUM_EXAMPLES / len(rows) * predictors.T @ weights


@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    seed=some.integers(0, 2**31),
    num_steps=some.integers(1, 6),
    step_size=some.floats(0.02, 0.3),
    friction=some.floats(0.1, 2.0),
)
def test_amagold_is_eq_6(seed, num_steps, step_size, friction):
    generator, data, mass = problem(seed)
    with jax.enable_x64(True):
        target = amagold.Posterior(log_likelihood, log_prior, data)
        settings = dict(
            step_size=step_size,
            friction=friction,
            mass=mass,
            num_steps=num_steps,
            batch_size=BATCH_SIZE,
        )
        sampler = amagold.amagold(target, **settings)
        state = sampler.init(jnp.asarray(generator.normal(size=DIMENSION)))
        randomness = draw(sampler, jax.random.key(seed), state.position)
        info = advance(sampler, state, randomness)
        found = float(info.log_ratio)
        factor = np.linalg.inv(np.asarray(sampler.proposal.mass.inverse_factor, np.float64))
        start, momentum, noise, batches = jax.tree.map(
            np.asarray, (state.position, randomness.momentum, randomness.noise, randomness.batches)
        )

    # the path in the paper's own variables: theta and r = L p
    mass, inverse = factor @ factor.T, np.linalg.inv(factor @ factor.T)
    decay = step_size * friction
    theta, r = start.astype(np.float64), factor @ momentum
    forth = back = 0.0
    kinetic = lambda r: multivariate_normal.logpdf(r, cov=mass)  # noqa: E731
    spread = 4.0 * decay * mass / (1.0 + decay) ** 2
    log_start = log_density(data, theta) + kinetic(r)
    for t in range(num_steps):
        middle = theta + 0.5 * step_size * inverse @ r
        force = batch_gradient(data, middle, batches[t])
        mean = lambda r, force=force: ((1.0 - decay) * r - step_size * force) / (1.0 + decay)  # noqa: E731
        after = mean(r) + 2.0 * np.sqrt(decay) / (1.0 + decay) * factor @ noise[t]
        forth += multivariate_normal.logpdf(after, mean(r), spread)
        back += multivariate_normal.logpdf(-r, mean(-after), spread)
        theta, r = middle + 0.5 * step_size * inverse @ after, after
    wanted = log_density(data, theta) + kinetic(-r) - log_start + back - forth
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
@settings(max_examples=12, deadline=None, derandomize=True)
@given(
    seed=some.integers(0, 2**31), num_steps=some.integers(1, 6), step_size=some.floats(0.02, 0.5)
)
def test_corrected_sgld_is_eq_3(seed, num_steps, step_size):
    generator, data, mass = problem(seed)
    with jax.enable_x64(True):
        target = amagold.Posterior(log_likelihood, log_prior, data)
        gradient = gradients.minibatch(BATCH_SIZE, plan="palindrome")
        settings = dict(
            step_size=step_size,
            mass=mass,
            num_steps=num_steps,
            gradient=gradient,
            acceptance=acceptance.full(),
        )
        sampler = amagold.sgld(target, **settings)
        state = sampler.init(jnp.asarray(generator.normal(size=DIMENSION)))
        randomness = draw(sampler, jax.random.key(seed), state.position)
        info = advance(sampler, state, randomness)
        found = float(info.log_ratio)
        whitening = np.asarray(sampler.proposal.proposal.mass.inverse_factor, np.float64)
        start, noise, batches = jax.tree.map(
            np.asarray, (state.position, randomness.noise, randomness.batches)
        )

    inverse = whitening.T @ whitening
    theta, forth, back = start.astype(np.float64), 0.0, 0.0
    log_start = log_density(data, theta)
    for t in range(num_steps):

        def mean(at, t=t):
            return at - 0.5 * step_size**2 * inverse @ batch_gradient(data, at, batches[t])

        after = mean(theta) + step_size * whitening.T @ noise[t]
        forth += multivariate_normal.logpdf(after, mean(theta), step_size**2 * inverse)
        back += multivariate_normal.logpdf(theta, mean(after), step_size**2 * inverse)
        theta = after
    wanted = log_density(data, theta) - log_start + back - forth
    np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)
