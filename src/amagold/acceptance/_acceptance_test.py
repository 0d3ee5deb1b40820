"""What every test offers."""

from typing import ClassVar, NamedTuple, Protocol, runtime_checkable

import jax.numpy as jnp
from jax import Array

from amagold.core import trees
from amagold.core.array_types import Int32
from amagold.core.shapes import Flag, Position, RandomKey, Rows, Scalar, Whole
from amagold.mode._reference import Reference
from amagold.mode._row_bounds import Norm
from amagold.target import Target

RowNumbers = Int32[Array, " rows"]


class MoveReport(NamedTuple):
    """Of one move of a test that moves the chain itself, part by part."""

    acceptance_rate: Scalar
    num_examples: Whole


class Decision(NamedTuple):
    """The outcome of one test."""

    is_accepted: Flag
    log_ratio: Scalar  # log a, before the minimum with 0; -inf outside the domain
    is_divergent: Flag  # the ratio was not finite, or hopeless
    memory: trees.PyTree  # what is remembered of the proposed position, should it be accepted
    # how many the test looked at, where that is not the same every time
    num_examples: Whole | None = None
    # an example that broke the bound a test rests on, or -1; empty for tests without bounds
    broken_bound: Whole | tuple[()] = ()
    # where a test that moves the chain itself has brought it; None: to what was proposed
    position: Position | None = None
    # of its moves by name, as `move_names` has them
    moves: dict[str, MoveReport] | tuple[()] = ()


@runtime_checkable
class Acceptance(Protocol):
    """Decides whether the end of a trajectory becomes the next state."""

    label: str  # "exact", "biased", or "approximate" with its error parameter
    # False when the decision does not look at the work, so that no proposal need compute it
    uses_work: ClassVar[bool]

    def draw(self, key: RandomKey) -> trees.PyTree:
        """The randomness of one test."""
        ...

    def remember(self, target: Target, position: Position) -> trees.PyTree:
        """What the next test needs to know of the current position."""
        ...

    def decide(
        self,
        target: Target,
        draws: trees.PyTree,
        memory: trees.PyTree,
        proposed: Position,
        work: Scalar,
    ) -> Decision:
        """Accept or reject the proposed position, given what is remembered of the current one and
        the work of getting there.
        """
        ...

    def num_examples(self, target: Target) -> int:
        """How many examples one test looks at; where that varies, at least."""
        ...

    # what most tests have no need to say: theirs are these

    def bind(self, target: Target, reference: Reference | None = None) -> "Acceptance":
        """The test for a target; `reference` is what the gradient knows of all data."""
        return self

    def energy(self, memory: trees.PyTree) -> Scalar | tuple[()]:
        """U of the remembered position, up to a constant; the empty tuple when that is not
        remembered.
        """
        return ()

    def known_reference(self) -> Reference | None:
        """What it knows of all data; a checkpoint keeps it, where the gradient knows nothing."""
        return None

    def known_norm(self) -> Norm | None:
        """In which its bounds are; a checkpoint keeps it."""
        return None

    def foresee(self, draws: trees.PyTree) -> tuple[trees.PyTree, RowNumbers | tuple[()]]:
        """What a test begins with, as far as its randomness says, and the numbers of the rows that
        it will read for that.
        """
        return (), ()

    def decide_from(
        self,
        foreseen: trees.PyTree,
        rows: Rows | tuple[()],
        target: Target,
        draws: trees.PyTree,
        memory: trees.PyTree,
        proposed: Position,
        work: Scalar,
    ) -> tuple[Decision, Flag]:
        """`decide` without reading anything else than these rows, and whether that was enough."""
        return self.decide(target, draws, memory, proposed, work), jnp.bool_(True)

    @property
    def move_names(self) -> tuple[str, ...]:
        """Of the moves that a decision reports."""
        return ()

    # whether `decide_from` can decide, at least mostly
    can_foresee: ClassVar[bool] = False
    # whether every test looks at the same number of examples; if not, a decision says how many
    is_count_fixed: ClassVar[bool] = True
    # whether it rejects so often that a kept momentum would turn the chain around all the time
    needs_fresh_momentum: ClassVar[bool] = False


@runtime_checkable
class UnboundTest(Protocol):
    """A test before it knows its target."""

    def bind(self, target: Target, reference: Reference | None = None) -> Acceptance:
        """The test for a target: passes over the data for what it must know beforehand."""
        ...
