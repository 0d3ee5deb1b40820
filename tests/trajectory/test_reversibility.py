"""A trajectory run back with its noise reversed ends where it began, and its work is negated."""

import hypothesis.strategies as some
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_samplers import Jump
from hypothesis import given, settings

from amagold.trajectory import Langevin, Leapfrog, Phase, RandomWalk, Rotation
from amagold.trajectory._densities import from_densities
from amagold.trajectory._mass_matrix import DenseMass, as_mass
from amagold.trajectory._trajectory import run_trajectory

DIMENSION = 3


@jax.jit
def gradient(position, rows):
    """A rough stand-in for a minibatch: a different, non-linear force at every step."""
    matrix, shift = rows
    return matrix @ jnp.sin(position) + position**3 / (1.0 + position**2) + shift


def leapfrog_noise(proposal, here, there, force):
    """The xi that takes one momentum to the other: ((1 + b) p' - (1 - b) p + eps W g) / (2
    sqrt(b)).
    """
    decay = proposal.step_size * proposal.friction
    kicked = (
        (1 + decay) * there.momentum
        - (1 - decay) * here.momentum
        + proposal.step_size * proposal.mass.force(force)
    )
    return kicked / (2 * jnp.sqrt(decay))


def rotation_noise(proposal, here, there, force):
    """As for the leapfrog, between the momenta before and after the kick in the middle."""
    middle, before, _ = proposal._turn(
        proposal.mass.unwhiten(here.position - proposal.center), here.momentum
    )
    # there, turned back in time, the kick's end is where the first half ends
    _, after, _ = proposal._turn(
        proposal.mass.unwhiten(there.position - proposal.center), -there.momentum
    )
    decay = proposal.step_size * proposal.friction
    kicked = (
        -(1 + decay) * after
        - (1 - decay) * before
        + proposal.step_size * (proposal.mass.force(force) - middle)
    )
    return kicked / (2 * jnp.sqrt(decay))


def no_noise(proposal, here, there, force):
    return jnp.zeros(DIMENSION)


def langevin_noise(proposal, here, there, force):
    distance = proposal.mass.unwhiten(there.position - here.position)
    return distance / proposal.step_size + 0.5 * proposal.step_size * proposal.mass.force(force)


def random_walk_noise(proposal, here, there, force):
    return (there.position - here.position) / proposal.scale


def jump_noise(proposal, here, there, force):
    return (there.momentum - 0.6 * here.momentum + proposal.scale * force) / 0.8


def middle_of_drift(proposal, phase):
    """Where the step starting here asks for its gradient."""
    if isinstance(proposal, Leapfrog):
        return proposal._drift(phase.position, phase.momentum)
    if isinstance(proposal, Rotation):
        return proposal._place(
            proposal._turn(
                proposal.mass.unwhiten(phase.position - proposal.center), phase.momentum
            )[0]
        )
    if isinstance(proposal, Jump):
        return phase.position + 0.5 * proposal.scale * phase.momentum
    return phase.position


def unrounded(mass):
    """The same mass with an inverse to the last bit: turning there and back goes through both."""
    inverse = mass.inverse_factor.astype(jnp.float64)
    return DenseMass(inverse, jnp.linalg.inv(inverse))


KINDS = {
    "leapfrog": (lambda mass, scale: Leapfrog(scale, 0.8, mass), leapfrog_noise),
    "rotation": (
        lambda mass, scale: Rotation(5.0 * scale, unrounded(mass), jnp.arange(3.0), 0.8),
        rotation_noise,
    ),
    "rotation without friction": (
        lambda mass, scale: Rotation(5.0 * scale, unrounded(mass), jnp.arange(3.0)),
        no_noise,
    ),
    "langevin": (lambda mass, scale: Langevin(scale, mass), langevin_noise),
    "random walk": (lambda mass, scale: RandomWalk(scale), random_walk_noise),
    "user's skew proposal": (lambda mass, scale: Jump(scale), jump_noise),
}


@jax.jit
def one_step(proposal, phase, noise, rows):
    return proposal.step(phase, noise, lambda position: gradient(position, rows))


def walk(proposal, phase, noise, rows):
    """All phases of a trajectory and its whole work."""
    phases, total = [phase], 0.0
    for step_noise, *step_rows in zip(noise, *rows, strict=True):
        phase, work = one_step(proposal, phases[-1], step_noise, tuple(step_rows))
        phases.append(phase)
        total = total + work
    return phases, total


@pytest.mark.few(3)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=40, deadline=None, derandomize=True)
@given(seed=some.integers(0, 2**31), num_steps=some.integers(1, 20), scale=some.floats(0.01, 0.3))
def test_there_and_back(kind, seed, num_steps, scale):
    with jax.enable_x64(True):
        build, noise_between = KINDS[kind]
        noise_between = jax.jit(noise_between)
        generator = np.random.default_rng(seed)
        factor = generator.normal(size=(DIMENSION, DIMENSION))
        raw = build(as_mass(factor @ factor.T + np.eye(DIMENSION)), scale)
        proposal = from_densities(raw)
        noise = generator.normal(size=(num_steps, DIMENSION))
        rows = (
            generator.normal(size=(num_steps, DIMENSION, DIMENSION)),
            generator.normal(size=(num_steps, DIMENSION)),
        )
        momentum = jnp.asarray(generator.normal(size=DIMENSION)) if hasattr(raw, "reverse") else ()
        start = Phase(jnp.asarray(generator.normal(size=DIMENSION)), momentum)
        phases, work = walk(proposal, start, noise, rows)

        # the noise of each step on the way back, from the two phases that it must join
        back = []
        for step in reversed(range(num_steps)):
            here, there = proposal.reverse(phases[step + 1]), proposal.reverse(phases[step])
            force = gradient(middle_of_drift(raw, here), (rows[0][step], rows[1][step]))
            back.append(np.asarray(noise_between(raw, here, there, force)))
        returned, work_back = walk(
            proposal, proposal.reverse(phases[-1]), back, (rows[0][::-1], rows[1][::-1])
        )

        home = proposal.reverse(returned[-1])
        for found, wanted in zip(jax.tree.leaves(home), jax.tree.leaves(start), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(work_back, -work, rtol=1e-7, atol=1e-7)


def test_the_loop_takes_these_steps():
    """The scan that samplers run is the walk that was reversed above."""
    generator = np.random.default_rng(5)
    proposal = Leapfrog(0.1, 0.8, as_mass(2.0))
    noise = generator.normal(size=(7, DIMENSION)).astype(np.float32)
    rows = (
        generator.normal(size=(7, DIMENSION, DIMENSION)).astype(np.float32),
        generator.normal(size=(7, DIMENSION)).astype(np.float32),
    )
    start = Phase(jnp.zeros(DIMENSION), jnp.ones(DIMENSION))
    phases, work = walk(proposal, start, noise, rows)
    end, total, calls = run_trajectory(proposal, start, noise, rows, gradient, 7)
    np.testing.assert_allclose(end.position, phases[-1].position, rtol=1e-5)
    np.testing.assert_allclose(total, work, rtol=1e-5)
    assert calls == 1
