"""What every test offers."""

from typing import Any, NamedTuple, Protocol

import jax

from amagold.core import trees
from amagold.target import Target


class Decision(NamedTuple):
    """The outcome of one test."""

    is_accepted: jax.Array
    log_ratio: jax.Array  # log a, before the minimum with 0; -inf outside the domain
    is_divergent: jax.Array  # the ratio was not finite, or hopeless
    memory: Any  # what is remembered of the proposed position, should it be accepted
    # how many the test looked at, where that is not the same every time
    num_examples: jax.Array | None = None
    # an example that broke the bound a test rests on, or -1; empty for tests without bounds
    broken_bound: Any = ()


class Acceptance(Protocol):
    """Decides whether the end of a trajectory becomes the next state."""

    @property
    def label(self) -> str:
        """ "exact", "biased", or "approximate" with its error parameter."""
        ...

    @property
    def uses_work(self) -> bool:
        """False when the decision does not look at the work, so that the proposal need not compute
        it.
        """
        ...

    def draw(self, key: jax.Array) -> Any:
        """The randomness of one test."""
        ...

    def remember(self, target: Target, position: trees.PyTree) -> Any:
        """What the next test needs to know of the current position."""
        ...

    def energy(self, memory: Any) -> Any:
        """U of the remembered position, up to a constant; the empty tuple when that is not
        remembered.
        """
        ...

    def decide(
        self, target: Target, draws: Any, memory: Any, proposed: trees.PyTree, work: jax.Array
    ) -> Decision:
        """Accept or reject the proposed position, given what is remembered of the current one and
        the work of getting there.
        """
        ...

    def num_examples(self, target: Target) -> int:
        """How many examples one test looks at."""
        ...
