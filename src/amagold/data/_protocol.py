"""What every place for examples offers."""

from collections.abc import Callable
from typing import Protocol, TypeVar, runtime_checkable

import jax
from jax.typing import ArrayLike

from amagold.core import trees
from amagold.data._example_chunk import Chunk

Carry = TypeVar("Carry")
Held = TypeVar("Held")


@runtime_checkable
class Data(Protocol):
    """Examples, numbered from 0. A pytree: what of it is on a device is traced by JAX."""

    @property
    def num_examples(self) -> int: ...

    @property
    def example(self) -> trees.PyTree:
        """The form of one example: shapes and types alone."""
        ...

    def rows(self, numbers: ArrayLike) -> trees.PyTree:
        """The examples of these numbers, with the leading axes of the numbers."""
        ...

    def fold(self, visit: Callable[[Carry, Chunk], Carry], carry: Carry, chunk_size: int) -> Carry:
        """Visit all examples in order, up to `chunk_size` at a time: `carry = visit(carry, chunk)`.

        The chunks are of one length, and none is skipped.
        """
        ...

    def scan_if(
        self,
        flag: jax.Array,
        visit: Callable[[Carry, Chunk, Held], Carry],
        carry: Carry,
        held: Held,
        chunk_size: int,
    ) -> Carry:
        """The same where the flag says so, and the carry as it is where it does not.

        A loop that does not turn where no chain asks for it. `held` is what the visits compute
        with beside the rows, such as positions.
        """
        ...

    def some(self, count: int) -> "Data":
        """Up to `count` examples, evenly spread, that may stand for all."""
        ...

    @property
    def is_concrete(self) -> bool:
        """Whether the examples can be looked at now, outside a trace."""
        ...

    def fingerprint(self) -> str | None:
        """A checksum of all examples, in order; None where there are none."""
        ...
