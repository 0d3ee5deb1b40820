"""What the runner, warm-up and `amagold.sample` ask of everything that makes transitions: of a
sampler, and of samplers that are put together.
"""

from typing import Any, Protocol, runtime_checkable

import jax

from amagold.core import trees
from amagold.target import Target


@runtime_checkable
class Kernel(Protocol):
    """Transitions that leave the target alone, or say by their label that they do not quite."""

    target: Target
    num_steps: int  # of one transition

    @property
    def label(self) -> str:
        """Of its draws: "exact", "biased", or "approximate" with its error."""
        ...

    @property
    def settings(self) -> dict[str, Any]:
        """What warm-up may set."""
        ...

    def with_settings(self, **settings: Any) -> Any:
        """The same with other settings; traced values may be given."""
        ...

    @property
    def tuned(self) -> Any:
        """All that warm-up may have changed, for a checkpoint."""
        ...

    def with_tuned(self, tuned: Any) -> Any:
        """The same with what a checkpoint kept."""
        ...

    def check(self, position: trees.PyTree) -> None:
        """Raise where it does not fit positions like this one."""
        ...

    def init(self, position: trees.PyTree, key: jax.Array | None = None) -> Any:
        """The state at a position."""
        ...

    def draw(self, key: jax.Array, position: trees.PyTree, late: bool = False) -> Any:
        """All randomness of one transition."""
        ...

    @property
    def chain_axes(self) -> Any:
        """Where chains are in the randomness of many."""
        ...

    def draws_late(self, position: trees.PyTree, num_chains: int = 1) -> bool:
        """Whether there is so much of it that it is better drawn late."""
        ...

    def gather(self, randomness: Any, batches: trees.PyTree = None) -> Any:
        """The rows that the randomness names."""
        ...

    def advance(self, state: Any, randomness: Any, rows: Any = None) -> tuple[Any, Any]:
        """The transition itself."""
        ...

    @property
    def can_go_ahead(self) -> bool:
        """Whether all rows that transitions mostly need are known from their randomness alone."""
        ...

    def remember(self, position: trees.PyTree) -> Any:
        """What the state at a position remembers of it."""
        ...

    def energy(self, state: Any) -> Any:
        """U of a state, up to a constant; the empty tuple where it is not remembered."""
        ...

    # what most have no need to say: theirs are these

    def known_reference(self) -> Any:
        """What it knows of all data about one position; a checkpoint keeps it."""
        return None

    def known_norm(self) -> Any:
        """In which the bounds of its test are; a checkpoint keeps it."""
        return None

    @property
    def uses_work(self) -> bool:
        """Whether anything is ever rejected."""
        ...

    @property
    def is_count_fixed(self) -> bool:
        """Whether the tests of all transitions look at the same number of examples."""
        ...

    @property
    def is_external(self) -> bool:
        """Whether batches come from outside."""
        ...

    def num_gradients(self, position: trees.PyTree) -> int:
        """How many gradients one transition evaluates."""
        ...

    def num_gradient_examples(self, position: trees.PyTree) -> int:
        """How many examples they look at."""
        ...

    @property
    def num_energy_examples(self) -> int:
        """How many examples the tests of one transition look at, at least."""
        ...
