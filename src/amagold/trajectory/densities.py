"""From a proposal written as densities to a step with its work: eq. 3 (reversible) and eq. 6 (skew-reversible) of the paper."""

from typing import Any

import jax
import jax.numpy as jnp

from amagold import trees
from amagold.randomness import Draw
from amagold.trajectory.phase import Gradient, Phase, Proposal


@trees.record()
class Reversible:
    """Eq. 3: work = log P(y, x; zeta) - log P(x, y; zeta), for a proposal on positions.

    The proposal has `draw(key, position, shape)`, `propose(position, noise, gradient)` and
    `log_density(origin, destination, gradient)`.
    """

    proposal: Any

    def check(self, position: trees.PyTree) -> None:
        _check(self.proposal, position)

    @property
    def draw(self) -> Draw:
        return self.proposal.draw

    draw_momentum = None

    def reverse(self, phase: Phase) -> Phase:
        return phase

    def step(self, phase: Phase, noise: Any, gradient: Gradient) -> tuple[Phase, jax.Array]:
        here = phase.position
        there = self.proposal.propose(here, noise, gradient)
        work = self.proposal.log_density(there, here, gradient) - self.proposal.log_density(here, there, gradient)
        return Phase(there), work


@trees.record()
class SkewReversible:
    """Eq. 6: work = log P(y^, x^; zeta) phi(y) - log P(x, y; zeta) phi(x), for a proposal on phases.

    The proposal has `draw`, `propose` and `log_density` as above but on `Phase`s, and also `draw_momentum(key, position, shape)`,
    `log_momentum(momentum)` (log phi, up to a constant) and `reverse(phase)`, an involution that keeps phi.
    """

    proposal: Any

    def check(self, position: trees.PyTree) -> None:
        _check(self.proposal, position)

    @property
    def draw(self) -> Draw:
        return self.proposal.draw

    @property
    def draw_momentum(self) -> Draw | None:
        return self.proposal.draw_momentum

    def reverse(self, phase: Phase) -> Phase:
        return self.proposal.reverse(phase)

    def step(self, phase: Phase, noise: Any, gradient: Gradient) -> tuple[Phase, jax.Array]:
        there = self.proposal.propose(phase, noise, gradient)
        forth = self.proposal.log_density(phase, there, gradient)
        back = self.proposal.log_density(self.reverse(there), self.reverse(phase), gradient)
        momentum_gain = self.proposal.log_momentum(there.momentum) - self.proposal.log_momentum(phase.momentum)
        return there, back - forth + momentum_gain


def from_densities(proposal: Any) -> Proposal:
    """Make a proposal from what the user wrote: one with `step` as it is, one with `reverse` by eq. 6, else by eq. 3."""
    if hasattr(proposal, "step"):
        return proposal
    needed = ["draw", "propose", "log_density"]
    if hasattr(proposal, "reverse"):
        needed += ["draw_momentum", "log_momentum"]
    missing = [name for name in needed if not hasattr(proposal, name)]
    if missing:
        raise ValueError(
            f"proposal must have the methods {', '.join(needed)}, but {type(proposal).__name__} lacks {', '.join(missing)}; "
            "see amagold.trajectory.RandomWalk for the shortest example"
        )
    return SkewReversible(proposal) if hasattr(proposal, "reverse") else Reversible(proposal)


@trees.record()
class Unadjusted:
    """A proposal that nobody will test: it moves and accounts for nothing."""

    proposal: Any

    def check(self, position: trees.PyTree) -> None:
        _check(self.proposal, position)

    @property
    def draw(self) -> Draw:
        return self.proposal.draw

    @property
    def draw_momentum(self) -> Draw | None:
        return self.proposal.draw_momentum if hasattr(self.proposal, "reverse") else None

    def reverse(self, phase: Phase) -> Phase:
        return self.proposal.reverse(phase) if hasattr(self.proposal, "reverse") else phase

    def step(self, phase: Phase, noise: Any, gradient: Gradient) -> tuple[Phase, jax.Array]:
        if hasattr(self.proposal, "reverse"):
            return self.proposal.propose(phase, noise, gradient), jnp.float32(0.0)
        return Phase(self.proposal.propose(phase.position, noise, gradient)), jnp.float32(0.0)


def without_densities(proposal: Any) -> Proposal:
    """The same proposal where no test follows, sparing the densities."""
    return proposal if hasattr(proposal, "step") else Unadjusted(proposal)


def _check(proposal: Any, position: trees.PyTree) -> None:
    """Let the proposal look at the position, if it wants to."""
    if hasattr(proposal, "check"):
        proposal.check(position)
