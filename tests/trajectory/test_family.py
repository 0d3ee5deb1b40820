"""Steps of the rest of the family: run back with the noise that their parts ask for, and their work
against path densities by brute force.
"""

import hypothesis.strategies as some
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_samplers import by_place
from hypothesis import given, settings
from scipy.stats import multivariate_normal, norm

from amagold.trajectory import NoseHoover, Obabo, Phase, Preconditioned, Thermostatted, Ubu
from amagold.trajectory._free_motion import drifted_by, renew
from amagold.trajectory._kick import kick
from amagold.trajectory._mass_matrix import DenseMass, as_mass

DIMENSION = 3


def gradient_of(rows):
    """A rough stand-in for a minibatch: a non-linear force."""
    matrix, shift = rows
    return lambda at: matrix @ jnp.sin(at) + at**3 / (1.0 + at**2) + shift


def renewing_noise(before, after, decay):
    """The xi with after = exp(-b) before + sqrt(1 - exp(-2 b)) xi."""
    return (after - np.exp(-decay) * before) / np.sqrt(-np.expm1(-2.0 * decay))


def obabo_back(proposal, phase, noise, gradient):
    decay = proposal.step_size * proposal.friction
    end, _ = proposal.step(phase, noise, gradient)
    first = renew(phase.momentum, noise[0], decay)
    # by the drift in the middle, from where the second half kick begins
    carried = proposal.mass.unwhiten(end.position - phase.position) / proposal.step_size
    last = carried - 0.5 * proposal.step_size * proposal.mass.force(gradient(end.position))
    return (
        renewing_noise(-end.momentum, -last, decay),
        renewing_noise(-first, -phase.momentum, decay),
    )


def free_back(proposal, here, there):
    """The noises of a free motion from there, turned around, to here."""
    decay = proposal.step_size * proposal.friction
    mean = drifted_by(
        -there.momentum, -here.momentum, jnp.zeros(DIMENSION), decay, 0.5 * proposal.step_size
    )
    one = jnp.ones(DIMENSION)
    spread = drifted_by(0.0 * one, 0.0 * one, one, decay, 0.5 * proposal.step_size)
    away = proposal.mass.unwhiten(here.position - there.position)
    return renewing_noise(-there.momentum, -here.momentum, decay), (away - mean) / spread


def ubu_back(proposal, phase, noise, gradient):
    before = proposal._free(phase, noise[0])
    force = proposal.mass.force(gradient(before.position))
    after = Phase(before.position, before.momentum - proposal.step_size * force)
    end = proposal._free(after, noise[1])
    return free_back(proposal, after, end), free_back(proposal, phase, before)


def nose_hoover_back(proposal, phase, noise, gradient):
    momentum, thermostat = phase.momentum
    middle = proposal._drift(phase.position, momentum)
    thermostat, _ = proposal._heat(momentum, thermostat)
    before, _ = proposal._damp(momentum, thermostat)
    force = proposal.mass.force(gradient(middle))
    after, _ = kick(before, force, noise, proposal.step_size, proposal.friction)
    decay = proposal.step_size * proposal.friction
    # (1 + b) (-p) = (1 - b) (-p') - epsilon W g + 2 sqrt(b) xi
    kicked = -(1 + decay) * before + (1 - decay) * after + proposal.step_size * force
    return kicked / (2.0 * jnp.sqrt(decay))


KINDS = {
    "obabo": (Obabo, obabo_back),
    "ubu": (Ubu, ubu_back),
    "nose-hoover": (NoseHoover, nose_hoover_back),
}


def start(kind, generator):
    momentum = jnp.asarray(generator.normal(size=DIMENSION))
    if kind is NoseHoover:
        momentum = Thermostatted(momentum, jnp.asarray(generator.normal()))
    return Phase(jnp.asarray(generator.normal(size=DIMENSION)), momentum)


def some_rows(generator):
    return (
        jnp.asarray(generator.normal(size=(DIMENSION, DIMENSION))),
        jnp.asarray(generator.normal(size=DIMENSION)),
    )


@jax.jit
def one_step(proposal, phase, noise, rows):
    return proposal.step(phase, noise, gradient_of(rows))


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=10, deadline=None, derandomize=True)
@given(seed=some.integers(0, 2**31), scale=some.floats(0.02, 0.5), friction=some.floats(0.05, 3.0))
def test_there_and_back(kind, seed, scale, friction):
    with jax.enable_x64(True):
        build, back = KINDS[kind]
        generator = np.random.default_rng(seed)
        factor = generator.normal(size=(DIMENSION, DIMENSION))
        inverse = jnp.asarray(np.linalg.inv(np.linalg.cholesky(factor @ factor.T + np.eye(3))))
        proposal = build(scale, friction, DenseMass(inverse, jnp.linalg.inv(inverse)))
        phase, rows = start(build, generator), some_rows(generator)
        noise = proposal.draw(jax.random.key(seed), phase.position)
        end, work = one_step(proposal, phase, noise, rows)
        wanted = back(proposal, phase, noise, gradient_of(rows))
        returned, work_back = one_step(proposal, proposal.reverse(end), wanted, rows)
        home = proposal.reverse(returned)
        for found, expected in zip(jax.tree.leaves(home), jax.tree.leaves(phase), strict=True):
            np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(work_back, -work, rtol=1e-7, atol=1e-7)


def free_density(proposal, here, there):
    """log density of (theta, p) -> (theta', p') by friction and noise for a time t, from the
    integrals of dtheta = p dt, dp = -gamma p dt + sqrt(2 gamma) dW.
    """
    gamma, t = 2.0 * proposal.friction, 0.5 * proposal.step_size
    kept = np.exp(-gamma * t)
    of_position = 2.0 / gamma * (t - 2.0 * (1 - kept) / gamma + (1 - kept**2) / (2.0 * gamma))
    both, of_momentum = (1 - kept) ** 2 / gamma, 1 - kept**2
    covariance = np.array([[of_position, both], [both, of_momentum]])
    total = 0.0
    for q, p, q_after, p_after in zip(*here, *there, strict=True):
        mean = [q + (1 - kept) / gamma * p, kept * p]
        total += multivariate_normal.logpdf([q_after, p_after], mean, covariance)
    return total


def ubu_path(proposal, phase, noise, gradient):
    before = proposal._free(phase, noise[0])
    after = Phase(before.position, before.momentum - proposal.step_size * gradient(before.position))
    end = proposal._free(after, noise[1])
    turn = proposal.reverse
    forth = free_density(proposal, phase, before) + free_density(proposal, after, end)
    back = free_density(proposal, turn(end), turn(after))
    return forth, back + free_density(proposal, turn(before), turn(phase)), 0.0


def obabo_path(proposal, phase, noise, gradient):
    half, decay = 0.5 * proposal.step_size, proposal.step_size * proposal.friction

    def renewing(before, after):
        spread = np.sqrt(1.0 - np.exp(-2.0 * decay))
        return norm.logpdf(after, np.exp(-decay) * before, spread).sum()

    first = renew(phase.momentum, noise[0], decay)
    carried = first - half * gradient(phase.position)
    last = carried - half * gradient(phase.position + proposal.step_size * carried)
    end = renew(last, noise[1], decay)
    forth = renewing(phase.momentum, first) + renewing(last, end)
    return forth, renewing(-end, -last) + renewing(-first, -phase.momentum), 0.0


def nose_hoover_path(proposal, phase, noise, gradient):
    decay = proposal.step_size * proposal.friction

    def halves(momentum, thermostat, first):
        if first:
            thermostat, _ = proposal._heat(momentum, thermostat)
            return proposal._damp(momentum, thermostat)[0], thermostat
        momentum, _ = proposal._damp(momentum, thermostat)
        return momentum, proposal._heat(momentum, thermostat)[0]

    def volume(momentum, thermostat, first):
        def flat(both):
            return jnp.concatenate([*map(jnp.atleast_1d, halves(both[:-1], both[-1], first))])

        both = jnp.concatenate([momentum, thermostat[None]])
        return np.linalg.slogdet(np.asarray(jax.jacobian(flat)(both)))[1]

    middle = proposal._drift(phase.position, phase.momentum.momentum)
    force = gradient(middle)
    before, thermostat = halves(*phase.momentum, True)
    after, _ = kick(before, force, noise, proposal.step_size, proposal.friction)
    spread = 2.0 * np.sqrt(decay) / (1.0 + decay)

    def kicked(p, p_after):
        mean = ((1.0 - decay) * p - proposal.step_size * force) / (1.0 + decay)
        return norm.logpdf(p_after, mean, spread).sum()

    lost = volume(*phase.momentum, True) + volume(after, thermostat, False)
    return kicked(before, after), kicked(-after, -before), lost


PATHS = {"obabo": obabo_path, "ubu": ubu_path, "nose-hoover": nose_hoover_path}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("seed", range(4))
def test_the_work_is_that_of_the_path_densities(kind, seed):
    """log [P(y^, x^) phi(y)] - log [P(x, y) phi(x)], and the volume that the step takes away."""
    with jax.enable_x64(True):
        generator = np.random.default_rng(seed)
        scale, friction = generator.uniform(0.2, 0.6), generator.uniform(0.5, 2.0)
        proposal = KINDS[kind][0](scale, friction, as_mass(1.0))
        phase, rows = start(KINDS[kind][0], generator), some_rows(generator)
        noise = proposal.draw(jax.random.key(seed), phase.position)
        end, work = proposal.step(phase, noise, gradient_of(rows))
        forth, back, lost = PATHS[kind](proposal, phase, noise, gradient_of(rows))
        squares = [
            sum(float(jnp.sum(leaf**2)) for leaf in jax.tree.leaves(at.momentum))
            for at in (phase, end)
        ]
        wanted = back - forth + 0.5 * (squares[0] - squares[1]) + lost
        np.testing.assert_allclose(work, wanted, rtol=1e-6, atol=1e-6)


def test_a_preconditioned_step_has_the_density_that_it_is_drawn_from():
    with jax.enable_x64(True):
        generator = np.random.default_rng(3)
        here, there = jnp.asarray(generator.normal(size=(2, DIMENSION)))
        proposal, gradient = Preconditioned(0.7, by_place), gradient_of(some_rows(generator))
        mean = here - 0.5 * 0.49 * by_place(here) * gradient(here)
        wanted = norm.logpdf(there, mean, 0.7 * jnp.sqrt(by_place(here))).sum()
        normalisation = -DIMENSION * (np.log(0.7) + 0.5 * np.log(2.0 * np.pi))
        found = proposal.log_density(here, there, gradient) + normalisation
        np.testing.assert_allclose(found, wanted, rtol=1e-9)
        noise = jnp.asarray(generator.normal(size=DIMENSION))
        moved = proposal.propose(here, noise, gradient)
        np.testing.assert_allclose(moved, mean + 0.7 * jnp.sqrt(by_place(here)) * noise)


def test_little_friction_is_the_leapfrog_s_drift():
    """Where friction goes to zero the free motion is a plain drift, in float32 too."""
    before, after = jnp.array([1.0, -0.5]), jnp.array([1.0, -0.5])
    for decay in (0.0, 1e-6, 1e-3):
        drift = drifted_by(before, after, jnp.zeros(2), decay, 0.3)
        np.testing.assert_allclose(drift, 0.3 * before, rtol=1e-5)
        spread = drifted_by(0.0 * before, 0.0 * after, jnp.ones(2), decay, 0.3)
        # 2 t^2 (b - 2 tanh(b/2)) / b^2 = t^2 b / 6 for a small b
        np.testing.assert_allclose(spread**2, 0.09 * decay / 6.0, rtol=1e-4)
