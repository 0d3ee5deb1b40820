"""Where a trajectory is, and what moves it."""

from collections.abc import Callable
from typing import Literal, NamedTuple, Protocol, runtime_checkable

import numpy as np

from amagold.core import trees
from amagold.core.randomness import DrawFunction
from amagold.core.shapes import Form, Number, Position, Scalar

# position -> grad U~_t(position), of the step's own minibatch
Gradient = Callable[[Position], Position]


def has_friction(friction: Number | None) -> bool:
    """Whether friction and its noise renew the momentum. A traced value passes: it is not known
    yet.
    """
    return friction is not None and (
        not trees.is_concrete(friction) or bool(np.all(np.asarray(friction) > 0.0))
    )


class Thermostatted(NamedTuple):
    """A momentum and the thermostat that goes with it, both standardised: kept, reversed and drawn
    afresh together.
    """

    momentum: Position
    thermostat: Scalar


class Phase(NamedTuple):
    """A point of the space a proposal moves in: theta, and r where there is a momentum (else the
    empty tuple).
    """

    position: Position
    momentum: Position | Thermostatted | tuple[()] = ()


Symmetry = Literal["reversible", "skew-reversible", "none"]  # what a step's work accounts for


@runtime_checkable
class Proposal(Protocol):
    """One stochastic step, apart from its randomness."""

    @property
    def symmetry(self) -> Symmetry:
        """Whether the work makes up for the way back: as it is ("reversible"), or with time turned
        around ("skew-reversible").

        "none" where it does not: no test can then make the sampler exact.
        """
        ...

    @property
    def refreshes_momentum(self) -> bool:
        """Whether a momentum that is kept from one transition to the next is forgotten in time;
        False stays on few paths.
        """
        ...

    def check(self, position: Form) -> None:
        """Raise when the proposal does not fit positions of this form."""
        ...

    @property
    def draw(self) -> DrawFunction | None:
        """The step's own noise, with `shape` as leading axes; None where there is none. Reads only
        the position's form.
        """
        ...

    @property
    def draw_momentum(self) -> DrawFunction | None:
        """A momentum from its stationary distribution; None where there is none."""
        ...

    def reverse(self, phase: Phase) -> Phase:
        """The involution x^ that turns time around; the identity for a reversible proposal."""
        ...

    def step(self, phase: Phase, noise: trees.PyTree, gradient: Gradient) -> tuple[Phase, Scalar]:
        """The next phase and the work of getting there."""
        ...
