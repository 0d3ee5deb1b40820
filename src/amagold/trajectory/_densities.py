"""From a proposal written as densities to a step with its work: eq. 3 (reversible) and eq. 6
(skew-reversible) of the paper.
"""

from typing import Any, get_args

import jax.numpy as jnp

from amagold.core import trees
from amagold.core.randomness import DrawFunction
from amagold.core.shapes import Form, Position, Scalar
from amagold.trajectory._phase import Gradient, Phase, Proposal, Symmetry


@trees.record(static=("is_tested",))
class FromDensities:
    """A proposal that a user wrote, as the trajectory runs it.

    The user's proposal has `draw(key, position, shape)`, `propose(position, noise, gradient)` and
    `log_density(origin, destination, gradient)` on positions. With a momentum it has them on
    `Phase`s, and also `draw_momentum(key, position, shape)`, `log_momentum(momentum)` (log phi, up
    to a constant) and `reverse(phase)`, an involution that keeps phi. When no test follows,
    `is_tested` is False and the densities are spared.
    """

    proposal: Any
    is_tested: bool

    @property
    def has_momentum(self) -> bool:
        return hasattr(self.proposal, "reverse")

    @property
    def symmetry(self) -> Symmetry:
        # the densities correct whatever step it is, by eq. 6 or eq. 3
        return "skew-reversible" if self.has_momentum else "reversible"

    @property
    def refreshes_momentum(self) -> bool:
        return getattr(self.proposal, "refreshes_momentum", True)

    @property
    def draw(self) -> DrawFunction:
        return self.proposal.draw

    @property
    def draw_momentum(self) -> DrawFunction | None:
        return self.proposal.draw_momentum if self.has_momentum else None

    def check(self, position: Form) -> None:
        if hasattr(self.proposal, "check"):
            self.proposal.check(position)

    def reverse(self, phase: Phase) -> Phase:
        return self.proposal.reverse(phase) if self.has_momentum else phase

    def step(self, phase: Phase, noise: trees.PyTree, gradient: Gradient) -> tuple[Phase, Scalar]:
        if not self.has_momentum:
            here = phase.position
            there = self.proposal.propose(here, noise, gradient)
            return Phase(there), self._reversible_work(
                here, there, gradient
            ) if self.is_tested else jnp.float32(0.0)
        end = self.proposal.propose(phase, noise, gradient)
        return end, self._skew_reversible_work(
            phase, end, gradient
        ) if self.is_tested else jnp.float32(0.0)

    def _reversible_work(self, here: Position, there: Position, gradient: Gradient) -> Scalar:
        # eq. 3: log P(y, x; zeta) - log P(x, y; zeta)
        return self.proposal.log_density(there, here, gradient) - self.proposal.log_density(
            here, there, gradient
        )

    def _skew_reversible_work(self, here: Phase, there: Phase, gradient: Gradient) -> Scalar:
        # eq. 6: log P(y^, x^; zeta) phi(y) - log P(x, y; zeta) phi(x)
        forth = self.proposal.log_density(here, there, gradient) + self.proposal.log_momentum(
            here.momentum
        )
        back = self.proposal.log_density(
            self.reverse(there), self.reverse(here), gradient
        ) + self.proposal.log_momentum(there.momentum)
        return back - forth


def from_densities(proposal: Any, is_tested: bool = True) -> Proposal:
    """Make a proposal from what the user wrote; one that has `step`, and so knows its own work, is
    used as it is.
    """
    if hasattr(proposal, "step"):
        return _checked(proposal)
    needed = ["draw", "propose", *(["log_density"] if is_tested else [])]
    if hasattr(proposal, "reverse"):
        needed += ["draw_momentum", *(["log_momentum"] if is_tested else [])]
    missing = [name for name in needed if not hasattr(proposal, name)]
    if missing:
        raise ValueError(
            f"proposal must have the methods {', '.join(needed)}, but {type(proposal).__name__} "
            f"lacks {', '.join(missing)}; "
            "see amagold.trajectory.RandomWalk for the shortest example"
        )
    return FromDensities(proposal, is_tested)


def _checked(proposal: Any) -> Proposal:
    """A proposal that knows its own work must say what that work accounts for, because nothing else
    can tell.
    """
    found = getattr(proposal, "symmetry", None)
    if found not in get_args(Symmetry):
        raise ValueError(
            "proposal must say what its work accounts for, but the symmetry of "
            f"{type(proposal).__name__} is {found!r}; give it "
            'symmetry = "reversible", "skew-reversible" or, where the work does not make up for '
            'the way back, "none"'
        )
    return proposal
