"""Two places for examples as one: those of the first, then those of the second."""

import hashlib
from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from amagold.core import trees
from amagold.data._example_chunk import Chunk
from amagold.data._fields import ColumnMoments
from amagold.data._in_memory import InMemory
from amagold.data._protocol import Data

Carry = TypeVar("Carry")
Held = TypeVar("Held")


@trees.record(static=("seal", "moments_bytes"))
class Joined:
    """Nothing is copied; both have examples of one form."""

    first: Data
    second: Data
    seal: str = ""  # of all examples, where it is known otherwise than from both
    moments_bytes: bytes = b""  # `ColumnMoments` of all words, where they are known

    @property
    def moments(self) -> ColumnMoments | None:
        return ColumnMoments.from_bytes(self.num_examples, self.moments_bytes)

    @property
    def num_examples(self) -> int:
        return self.first.num_examples + self.second.num_examples

    @property
    def example(self) -> trees.PyTree:
        return self.first.example

    @property
    def is_concrete(self) -> bool:
        return self.first.is_concrete and self.second.is_concrete

    def rows(self, numbers: ArrayLike) -> trees.PyTree:
        numbers = jnp.asarray(numbers)
        before = self.first.num_examples
        is_first = numbers < before
        here = self.first.rows(jnp.where(is_first, numbers, 0))
        there = self.second.rows(jnp.where(is_first, 0, numbers - before))

        def choose(one: jax.Array, other: jax.Array) -> jax.Array:
            shape = (*is_first.shape, *[1] * (one.ndim - is_first.ndim))
            return jnp.where(is_first.reshape(shape), one, other)

        return jax.tree.map(choose, here, there)

    def fold(self, visit: Callable[[Carry, Chunk], Carry], carry: Carry, chunk_size: int) -> Carry:
        for place, before in self._places():
            carry = place.fold(
                lambda carry, chunk, before=before: visit(carry, chunk.moved(before, True)),
                carry,
                chunk_size,
            )
        return carry

    def scan_if(
        self,
        flag: jax.Array,
        visit: Callable[[Carry, Chunk, Held], Carry],
        carry: Carry,
        held: Held,
        chunk_size: int,
    ) -> Carry:
        for place, before in self._places():
            carry = place.scan_if(
                flag,
                lambda carry, chunk, held, before=before: visit(
                    carry, chunk.moved(before, True), held
                ),
                carry,
                held,
                chunk_size,
            )
        return carry

    def some(self, count: int) -> Data:
        if count < 2:
            return self.first.some(count)
        share = self.second.num_examples / self.num_examples
        of_second = min(max(1, round(count * share)), count - 1)
        parts = []
        for place, wanted in ((self.first, count - of_second), (self.second, of_second)):
            few = place.some(min(wanted, place.num_examples))
            parts.append(few.rows(jnp.arange(few.num_examples)))
        return InMemory(jax.tree.map(lambda *leaves: jnp.concatenate(leaves), *parts))

    def fingerprint(self) -> str:
        if self.seal:
            return hashlib.sha256(self.seal.encode()).digest().hex()
        both = f"{self.first.fingerprint()} {self.second.fingerprint()}"
        return hashlib.sha256(both.encode()).hexdigest()

    def _places(self) -> tuple[tuple[Data, int], tuple[Data, int]]:
        return (self.first, 0), (self.second, self.first.num_examples)
