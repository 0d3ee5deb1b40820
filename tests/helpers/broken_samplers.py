"""Twins of the exact samplers, each with one planted bug."""

import dataclasses
from typing import NamedTuple

import jax.numpy as jnp
from exact_samplers import ARROW, OfSomeSteps, amagold_with, by_place, rotation, two_blocks
from exact_target import log_likelihood, target

import amagold
from amagold import acceptance, gradients
from amagold.acceptance import FullTest
from amagold.core import trees
from amagold.gradients._full_gradient import energy_gradient
from amagold.samplers import BlockSampler, State
from amagold.target._conditional_target import part_at, with_part
from amagold.trajectory import (
    Leapfrog,
    NoseHoover,
    Obabo,
    Phase,
    Preconditioned,
    Rotation,
    RunningPreconditioner,
    Ubu,
)
from amagold.trajectory._arrow_mass import ArrowMass
from amagold.trajectory._free_motion import renew
from amagold.trajectory._mass_matrix import as_mass


def no_prior(position):
    return jnp.float32(0.0)


@trees.record(static=("keep", "chunk_size"))
class TestWithoutPrior(FullTest):
    """Bug: the test leaves the prior out."""

    __test__ = False

    def remember(self, target, position):
        return super().remember(amagold.Posterior(log_likelihood, no_prior, target.data), position)

    def decide(self, target, draws, memory, proposed, work):
        return super().decide(
            amagold.Posterior(log_likelihood, no_prior, target.data), draws, memory, proposed, work
        )


@trees.record()
class NotNegated(Leapfrog):
    """Bug: the momentum is kept as it is on rejection."""

    def reverse(self, phase):
        return phase


@trees.record()
class TooLoud(Leapfrog):
    """Bug: the injected noise is off by sqrt(2)."""

    def draw(self, key, position, shape=()):
        return jnp.sqrt(2.0) * amagold.normal_like(key, position, shape)


@trees.record()
class StretchedByPlace(Leapfrog):
    """Bug: the step size is not drawn apart from the state, it depends on where the step begins."""

    def step(self, phase, noise, gradient):
        stretch = 1.0 + 0.5 * jnp.tanh(4.0 * phase.position[0])
        return Leapfrog(stretch * self.step_size, self.friction, self.mass).step(
            phase, noise, gradient
        )


class StepsByPlace(OfSomeSteps):
    """Bug: the number of steps depends on where the trajectory begins."""

    def num_steps(self, key, state):
        return jnp.where(state.position[0] > -0.3, 1, self.sampler.num_steps)


@trees.record()
class OtherWork(Leapfrog):
    """Bug: the work comes from the exact gradient, the update from the minibatch's."""

    def step(self, phase, noise, gradient):
        end, _ = super().step(phase, noise, gradient)
        middle = self._drift(phase.position, phase.momentum)
        force = self.mass.force(energy_gradient(target(), middle))
        return Phase(*end), 0.5 * self.step_size * trees.dot(
            force, trees.add(phase.momentum, end.momentum)
        )


@trees.record()
class TurnsForNothing(Rotation):
    """Bug: what the momentum's density changes by in a turn is left out of the work."""

    def _turn(self, away, momentum):
        turned, slowed, work = super()._turn(away, momentum)
        return turned, slowed, jnp.zeros_like(work)


@trees.record()
class KicksByAll(Rotation):
    """Bug: the work is that of the kick by the whole gradient, the update that of the rest."""

    def step(self, phase, noise, gradient):
        end, work = super().step(phase, noise, gradient)
        middle, before, _ = self._turn(
            self.mass.unwhiten(phase.position - self.center), phase.momentum
        )
        return end, work + 0.5 * self.step_size * trees.dot(middle, before)


@trees.record()
class OneKick(Obabo):
    """Bug: the work of the second half kick is left out."""

    def step(self, phase, noise, gradient):
        end, work = super().step(phase, noise, gradient)
        momentum = renew(phase.momentum, noise[0], self.step_size * self.friction)
        return end, self._half_kick(momentum, gradient(phase.position))[1] + 0.0 * work


@trees.record()
class UnevenDrift(Ubu):
    """Bug: the position drifts by the momentum that a half step begins with, not by both."""

    def _free(self, phase, noise):
        after = super()._free(phase, noise)
        return Phase(phase.position + 0.5 * self.step_size * phase.momentum, after.momentum)


@trees.record()
class VolumeForgotten(NoseHoover):
    """Bug: the volume that damping takes away is left out of the work."""

    def _damp(self, momentum, thermostat):
        after, work = super()._damp(momentum, thermostat)
        size = trees.size(momentum)
        lost = 0.5 * self.step_size * thermostat / jnp.sqrt(self.inertia * size)
        return after, work + size * lost


@trees.record()
class ThermostatNotNegated(NoseHoover):
    """Bug: on rejection the momentum is negated, the thermostat is not."""

    def reverse(self, phase):
        turned = super().reverse(phase)
        return Phase(
            turned.position, turned.momentum._replace(thermostat=phase.momentum.thermostat)
        )


@trees.record(functions=("preconditioner",))
class DeterminantForgotten(Preconditioned):
    """Bug: the density leaves the determinant of the preconditioner out."""

    def log_density(self, origin, destination, gradient):
        volume = jnp.log(self.preconditioner(origin)).sum()
        return super().log_density(origin, destination, gradient) + 0.5 * volume


@trees.record()
class TestedWhileRunning(RunningPreconditioner):
    """Bug: a test follows a preconditioner that still learns, as if it were fixed."""

    __test__ = False
    symmetry = "reversible"

    def step(self, phase, noise, gradient):
        end, _ = super().step(phase, noise, gradient)
        scales = self.scales(end.momentum)
        fixed = Preconditioned(self.step_size, lambda position: scales)
        here, there = phase.position, end.position
        back = fixed.log_density(there, here, gradient)
        return end, back - fixed.log_density(here, there, gradient)


class RestartsByPlace(NamedTuple):
    """Bug: a cycle begins anew where the chain has come to a place, so that the step size tells of
    the state.
    """

    sampler: amagold.Sampler

    def init(self, position, key):
        return self.sampler.init(position, key)

    def step(self, key, state):
        after, info = self.sampler.step(key, state)
        number = jnp.where(after.position[0] > 0.0, 0, after.number)
        return after._replace(number=number), info


@trees.record(static=("places", "num_steps"))
class OthersAsTheyWere(BlockSampler):
    """Bug: each block is given the others as they were before the transition."""

    def advance(self, state, randomness, rows=None):
        position, momentum, infos = state.position, dict(state.momentum), {}
        for name, place in self.places:
            block = self.given(name, place, state.position)
            part = part_at(state.position, place)
            moved, infos[name] = block.advance(
                State(part, momentum[name], block.remember(part)), randomness[name]
            )
            position = with_part(position, place, moved.position)
            momentum[name] = moved.momentum
        memory = self.remember(position)
        return State(position, momentum, memory, state.number), self._told(infos)


@trees.record(static=("places", "num_steps"))
class MemoryOfBefore(BlockSampler):
    """Bug: a block's test remembers the energies of before the other block moved."""

    def advance(self, state, randomness, rows=None):
        position, momentum, infos = state.position, dict(state.momentum), {}
        for name, place in self.places:
            block = self.given(name, place, position)
            part = part_at(position, place)
            moved, infos[name] = block.advance(
                State(part, momentum[name], state.memory), randomness[name]
            )
            position = with_part(position, place, moved.position)
            momentum[name] = moved.momentum
        memory = self.remember(position)
        return State(position, momentum, memory, state.number), self._told(infos)


@trees.record()
class BorderLeftBehind(ArrowMass):
    """Bug: distances are undone without the border that velocities move levels along with."""

    def unwhiten(self, distance):
        alone = dataclasses.replace(ARROW, shifts=jnp.zeros_like(self.shifts))
        return alone.unwhiten(distance)


class FixedOrder(NamedTuple):
    """Bug: every trajectory sees the same batches in the same order, and claims that this
    is fine.
    """

    is_reversal_invariant: bool = True

    def check(self, num_steps, batch_size, num_examples):
        pass

    def draw(self, key, num_steps, batch_size, num_examples):
        return jnp.arange(num_steps * batch_size).reshape(num_steps, batch_size)


def with_proposal(kind, resample_momentum, step_size=0.1, friction=2.0):
    proposal = kind(step_size, friction, as_mass(1.0))
    return amagold.amortized(
        target(), proposal, 4, gradients.minibatch(2), resample_momentum=resample_momentum
    )


def with_thermostat(kind, resample_momentum, batch_size):
    """A light one, which moves far."""
    proposal = kind(0.15, 0.5, as_mass(1.0), inertia=0.05)
    return amagold.amortized(
        target(), proposal, 4, gradients.minibatch(batch_size), resample_momentum=resample_momentum
    )


def broken_samplers():
    """Name -> sampler with that bug."""
    samplers = {}
    for kind, resample in (("reversible", True), ("irreversible", False)):
        settings = dict(
            step_size=0.06, friction=0.7, num_steps=4, batch_size=2, resample_momentum=resample
        )
        samplers[f"{kind}: no correction"] = amagold.amagold(
            target(), acceptance=acceptance.never_reject(), **settings
        )
        samplers[f"{kind}: prior left out of the test"] = amagold.amagold(
            target(), acceptance=TestWithoutPrior(), **settings
        )
        samplers[f"{kind}: noise off by sqrt(2)"] = with_proposal(TooLoud, resample)
        samplers[f"{kind}: step size by the place"] = with_proposal(StretchedByPlace, resample)
        samplers[f"{kind}: number of steps by the place"] = StepsByPlace(
            amagold_with("iid", resample, num_steps=6)
        )
        samplers[f"{kind}: work from other gradients"] = with_proposal(OtherWork, resample)
        samplers[f"{kind}: turns that cost no work"] = rotation(resample, kind=TurnsForNothing)
        samplers[f"{kind}: turned by the rest, paid for by the whole"] = rotation(
            resample, kind=KicksByAll
        )
        samplers[f"{kind}: a border that is not undone"] = rotation(
            resample, mass=BorderLeftBehind(**vars(ARROW))
        )
        samplers[f"{kind}: fixed order of batches"] = amagold_with(
            FixedOrder(), resample, num_steps=3
        )
        samplers[f"{kind}: one kick of two"] = with_proposal(OneKick, resample)
        samplers[f"{kind}: an uneven drift"] = with_proposal(UnevenDrift, resample)
        samplers[f"{kind}: volume forgotten"] = with_thermostat(VolumeForgotten, resample, 4)
        samplers[f"{kind}: a cycle by the place"] = RestartsByPlace(
            amagold.cyclical(amagold_with("iid", resample, step_size=0.15), 3)
        )
    samplers["irreversible: blocks, others as they were"] = two_blocks(kind=OthersAsTheyWere)
    samplers["irreversible: blocks, memory of before"] = two_blocks(kind=MemoryOfBefore)
    samplers["irreversible: thermostat not negated"] = with_thermostat(
        ThermostatNotNegated, False, 2
    )
    samplers["reversible: determinant forgotten"] = amagold.amortized(
        target(), DeterminantForgotten(0.5, by_place), 3, gradients.minibatch(2)
    )
    samplers["irreversible: tested while running"] = amagold.amortized(
        target(),
        TestedWhileRunning(0.6, 0.5),
        3,
        gradients.minibatch(2),
        resample_momentum=False,
    )
    samplers["irreversible: momentum not negated"] = with_proposal(NotNegated, False, 0.12, 0.1)
    return samplers
