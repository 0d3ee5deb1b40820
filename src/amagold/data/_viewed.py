"""Examples seen through a function of each row: a table's columns, a regression's predictors."""

from collections.abc import Callable
from typing import TypeVar

import jax
from jax.typing import ArrayLike

from amagold.core import trees
from amagold.data._example_chunk import Chunk
from amagold.data._protocol import Data

Carry = TypeVar("Carry")
Held = TypeVar("Held")


@trees.record(functions=("view",))
class Viewed:
    """`view` takes rows with any leading axes, and gives rows with the same ones."""

    data: Data
    view: Callable[[trees.PyTree], trees.PyTree]

    @property
    def num_examples(self) -> int:
        return self.data.num_examples

    @property
    def example(self) -> trees.PyTree:
        return jax.eval_shape(self.view, self.data.example)

    @property
    def is_concrete(self) -> bool:
        return self.data.is_concrete

    def rows(self, numbers: ArrayLike) -> trees.PyTree:
        return self.view(self.data.rows(numbers))

    def fold(self, visit: Callable[[Carry, Chunk], Carry], carry: Carry, chunk_size: int) -> Carry:
        return self.data.fold(
            lambda carry, chunk: visit(carry, self._seen(chunk)), carry, chunk_size
        )

    def scan_if(
        self,
        flag: jax.Array,
        visit: Callable[[Carry, Chunk, Held], Carry],
        carry: Carry,
        held: Held,
        chunk_size: int,
    ) -> Carry:
        return self.data.scan_if(
            flag,
            lambda carry, chunk, held: visit(carry, self._seen(chunk), held),
            carry,
            held,
            chunk_size,
        )

    def some(self, count: int) -> "Viewed":
        return Viewed(self.data.some(count), self.view)

    def fingerprint(self) -> str | None:
        return self.data.fingerprint()

    def _seen(self, chunk: Chunk) -> Chunk:
        return chunk._replace(rows=self.view(chunk.rows))
