"""No examples: what a density that is computed whole has for data."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
from jax.typing import ArrayLike

from amagold.core import trees
from amagold.data._example_chunk import Chunk

Carry = TypeVar("Carry")


@trees.record()
class NoData:
    """A walk over it visits nothing."""

    num_examples = 0
    example = None
    is_concrete = True

    def rows(self, numbers: ArrayLike) -> trees.PyTree:
        raise ValueError("data must hold examples to be asked for rows, got none")

    def fold(self, visit: Callable[[Carry, Chunk], Carry], carry: Carry, chunk_size: int) -> Carry:
        return carry

    def scan_if(
        self, flag: jax.Array, visit: Any, carry: Carry, held: Any, chunk_size: int
    ) -> Carry:
        return carry

    def some(self, count: int) -> "NoData":
        return self

    def fingerprint(self) -> None:
        return None
