"""Where a trajectory is, and what moves it."""

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax

from amagold import trees
from amagold.randomness import Draw

Gradient = Callable[[trees.PyTree], trees.PyTree]  # position -> grad U~_t(position), of the step's own minibatch


class Phase(NamedTuple):
    """A point of the space a proposal moves in: theta, and r where there is a momentum (else the empty tuple)."""

    position: trees.PyTree
    momentum: trees.PyTree = ()


class Proposal(Protocol):
    """One stochastic step, apart from its randomness."""

    def check(self, position: trees.PyTree) -> None:
        """Raise when the proposal does not fit positions of this form."""
        ...

    @property
    def draw(self) -> Draw | None:
        """The step's own noise, with `shape` as leading axes; None where there is none. Reads only the position's form."""
        ...

    @property
    def draw_momentum(self) -> Draw | None:
        """A momentum from its stationary distribution; None where there is none."""
        ...

    def reverse(self, phase: Phase) -> Phase:
        """The involution x^ that turns time around; the identity for a reversible proposal."""
        ...

    def step(self, phase: Phase, noise: Any, gradient: Gradient) -> tuple[Phase, jax.Array]:
        """The next phase and the work of getting there."""
        ...
