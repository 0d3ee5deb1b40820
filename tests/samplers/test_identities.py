"""The paper's identities: what AMAGOLD becomes when a part of it is switched off."""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_target import NUM_EXAMPLES, target

import amagold
from amagold import acceptance
from amagold.samplers import State


def advance(sampler, state, key):
    randomness = sampler.draw(key, state.position)
    return sampler.advance(state, randomness, sampler.gather(randomness))


def test_a_full_batch_gives_l2mc():
    settings = dict(step_size=0.2, friction=0.5, num_steps=5)
    start, key = jnp.array([0.2, 0.4]), jax.random.key(0)
    full_batch = amagold.amagold(target(), gradient=amagold.gradients.full(), **settings)
    whole_epoch = amagold.amagold(
        target(), gradient=amagold.gradients.minibatch(NUM_EXAMPLES, plan="epoch"), **settings
    )
    baseline = amagold.l2mc(target(), **settings)
    wanted, wanted_info = advance(baseline, baseline.init(start), key)
    for sampler in (full_batch, whole_epoch):
        found, info = advance(sampler, sampler.init(start), key)
        np.testing.assert_allclose(found.position, wanted.position, rtol=1e-5)
        np.testing.assert_allclose(info.log_ratio, wanted_info.log_ratio, atol=1e-5)


@pytest.mark.slow
def test_a_full_batch_without_friction_gives_hmc():
    """Same proposal and same ratio as a textbook leapfrog with exp(H - H*)."""
    step_size, num_steps, mass = 0.1, 7, 2.0
    sampler = amagold.amagold(
        target(), step_size=step_size, friction=0.0, num_steps=num_steps, mass=mass
    )
    hmc = amagold.hmc(target(), step_size=step_size, num_steps=num_steps, mass=mass)
    start = jnp.array([0.2, 0.4])

    def energy(position):
        data = target().data
        return -target().log_prior(position) - target().log_likelihoods(position, data).sum()

    def hamiltonian(position, momentum):
        return energy(position) + 0.5 * momentum @ momentum / mass

    for seed in range(10):
        key = jax.random.key(seed)
        randomness = sampler.draw(key, start)
        position, momentum = start, math.sqrt(mass) * randomness.momentum
        before = hamiltonian(position, momentum)
        position = position + 0.5 * step_size * momentum / mass
        for step in range(num_steps):
            momentum = momentum - step_size * jax.grad(energy)(position)
            position = (
                position + (1.0 if step < num_steps - 1 else 0.5) * step_size * momentum / mass
            )
        log_ratio = before - hamiltonian(position, momentum)
        for candidate in (sampler, hmc):
            state, info = advance(candidate, candidate.init(start), key)
            np.testing.assert_allclose(info.log_ratio, log_ratio, atol=2e-5)
            if bool(info.is_accepted):
                np.testing.assert_allclose(state.position, position, rtol=1e-5)


def test_never_rejecting_gives_sghmc_under_the_map():
    """epsilon' = epsilon / sqrt(1 + b), beta' = beta / sqrt(1 + b), r' = sqrt(1 + b) r, started
    half a drift behind.
    """
    step_size, friction, num_steps = 0.1, 0.7, 6
    scale = math.sqrt(1.0 + step_size * friction)
    settings = dict(num_steps=num_steps, batch_size=3, resample_momentum=False)
    amagold_path = amagold.amagold(
        target(),
        step_size=step_size,
        friction=friction,
        acceptance=acceptance.never_reject(),
        **settings,
    )
    sghmc_path = amagold.sghmc(
        target(), step_size=step_size / scale, friction=friction / scale, **settings
    )
    position, momentum = jnp.array([0.2, 0.4]), jnp.array([0.5, -1.0])
    state = State(position, momentum, ())
    # theta of SGHMC is where the gradient is evaluated: half a drift before AMAGOLD's
    behind = State(position - 0.5 * step_size * momentum, scale * momentum, ())
    for seed in range(5):
        key = jax.random.key(seed)
        state, _ = advance(amagold_path, state, key)
        behind, _ = advance(sghmc_path, behind, key)
        np.testing.assert_allclose(behind.momentum, scale * state.momentum, rtol=1e-4, atol=1e-5)
        np.testing.assert_allclose(
            behind.position, state.position - 0.5 * step_size * state.momentum, rtol=1e-4, atol=1e-5
        )


def test_sghmc_is_algorithm_1():
    step_size, friction, noise_estimate, mass = 0.05, 0.6, 0.2, 3.0
    settings = dict(
        step_size=step_size,
        friction=friction,
        noise_estimate=noise_estimate,
        mass=mass,
        num_steps=4,
    )
    sampler = amagold.sghmc(target(), **settings)
    start = jnp.array([0.2, 0.4])
    randomness = sampler.draw(jax.random.key(1), start)
    state, info = sampler.advance(sampler.init(start), randomness, sampler.gather(randomness))

    def energy(position):
        return (
            -target().log_prior(position) - target().log_likelihoods(position, target().data).sum()
        )

    position, momentum = start, math.sqrt(mass) * randomness.momentum
    for step in range(4):
        position = position + step_size / mass * momentum
        noise = (
            math.sqrt(4 * step_size * (friction - noise_estimate) * mass) * randomness.noise[step]
        )
        momentum = (
            momentum
            - step_size * jax.grad(energy)(position)
            - 2 * step_size * friction * momentum
            + noise
        )
    np.testing.assert_allclose(state.position, position, rtol=1e-5)
    assert info.label == "biased"
    assert bool(info.is_accepted)


def test_from_sgd_is_the_paper_s_reformulation():
    """Algorithm 3 of the appendix, in v, b and h, walks the same path with the same work."""
    learning_rate, momentum_decay, num_steps = 0.01, 0.1, 5
    sampler = amagold.amagold(
        target(), num_steps=num_steps, **amagold.from_sgd(learning_rate, momentum_decay)
    )
    start = jnp.array([0.2, 0.4])
    randomness = sampler.draw(jax.random.key(3), start)
    state, info = sampler.advance(sampler.init(start), randomness, sampler.gather(randomness))

    def energy(position):
        return (
            -target().log_prior(position) - target().log_likelihoods(position, target().data).sum()
        )

    h, b = learning_rate, momentum_decay
    velocity, work = math.sqrt(h) * randomness.momentum, 0.0
    position = start + 0.5 * velocity
    for step in range(num_steps):
        position = position + (velocity if step else 0.0)
        gradient = jax.grad(energy)(position)
        after = (
            (1 - b) * velocity - h * gradient + math.sqrt(4 * h * b) * randomness.noise[step]
        ) / (1 + b)
        work = work + 0.5 * gradient @ (velocity + after)
        velocity = after
    position = position + 0.5 * velocity
    np.testing.assert_allclose(info.log_ratio, energy(start) - energy(position) + work, atol=1e-5)
    if bool(info.is_accepted):
        np.testing.assert_allclose(state.position, position, rtol=1e-5)


def test_langevin_is_a_leapfrog_step_with_a_fresh_momentum():
    """With beta = 1 / epsilon the leapfrog forgets its momentum; SGLD's step is the kick-drift part
    of that.
    """
    sampler = amagold.sgld(target(), step_size=0.1, num_steps=1)
    start = jnp.array([0.2, 0.4])
    randomness = sampler.draw(jax.random.key(3), start)
    state, _ = sampler.advance(sampler.init(start), randomness, sampler.gather(randomness))

    def energy(position):
        return (
            -target().log_prior(position) - target().log_likelihoods(position, target().data).sum()
        )

    # Welling and Teh: theta - (epsilon / 2) grad U + N(0, epsilon), with epsilon = step_size^2
    wanted = start - 0.5 * 0.01 * jax.grad(energy)(start) + 0.1 * randomness.noise[0]
    np.testing.assert_allclose(state.position, wanted, rtol=1e-5)
