"""Twins of the exact samplers, each with one planted bug."""

from typing import NamedTuple

import jax.numpy as jnp
from exact_samplers import OfSomeSteps, amagold_with, rotation
from exact_target import log_likelihood, target

import amagold
from amagold import acceptance, gradients
from amagold.acceptance import FullTest
from amagold.core import trees
from amagold.gradients._full_gradient import energy_gradient
from amagold.trajectory import Leapfrog, Phase, Rotation
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
        samplers[f"{kind}: fixed order of batches"] = amagold_with(
            FixedOrder(), resample, num_steps=3
        )
    samplers["irreversible: momentum not negated"] = with_proposal(NotNegated, False, 0.12, 0.1)
    return samplers
