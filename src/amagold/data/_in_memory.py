"""Examples in memory: a pytree of arrays with one common leading axis."""

import hashlib
from collections.abc import Callable
from functools import partial
from typing import TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from amagold.core import trees
from amagold.core.compiling import ONCE, jit
from amagold.data._example_chunk import Chunk, chunk_at, scan_chunks

Carry = TypeVar("Carry")
Held = TypeVar("Held")

BLOCK_BYTES = 4 * 2**20  # that a checksum reads at a time
NUM_RUNS = 1024  # of neighbours, that a few examples which stand for all are taken from


@trees.record()
class InMemory:
    """Arrays of JAX, on one device or shared by the host's."""

    arrays: trees.PyTree

    @property
    def num_examples(self) -> int:
        return jax.tree.leaves(self.arrays)[0].shape[0]

    @property
    def example(self) -> trees.PyTree:
        return jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), self.arrays
        )

    @property
    def is_concrete(self) -> bool:
        return trees.is_concrete(self.arrays)

    def rows(self, numbers: ArrayLike) -> trees.PyTree:
        return jax.tree.map(
            lambda leaf: leaf.at[numbers].get(mode="promise_in_bounds"), self.arrays
        )

    def fold(self, visit: Callable[[Carry, Chunk], Carry], carry: Carry, chunk_size: int) -> Carry:
        length = min(self.num_examples, chunk_size)
        if length == self.num_examples:
            return visit(carry, Chunk(self.arrays, 0, None))

        rows_from = partial(self.rows_from, length=length)

        def body(carry: Carry, index: jax.Array) -> tuple[Carry, None]:
            return visit(carry, chunk_at(index, self.num_examples, length, rows_from)), None

        num_chunks = -(-self.num_examples // length)
        return jax.lax.scan(body, carry, jnp.arange(num_chunks))[0]

    def scan_if(
        self,
        flag: jax.Array,
        visit: Callable[[Carry, Chunk, Held], Carry],
        carry: Carry,
        held: Held,
        chunk_size: int,
    ) -> Carry:
        length = min(self.num_examples, chunk_size)
        rows_from = partial(self.rows_from, length=length)
        return scan_chunks(flag, self.num_examples, length, rows_from, visit, carry, held)

    def some(self, count: int) -> "InMemory":
        numbers = numbers_of_some(self.num_examples, count)
        return self if numbers is None else InMemory(_rows_of(InMemory(self.arrays), numbers))

    def fingerprint(self) -> str:
        seal = hashlib.sha256()
        for path, leaf in jax.tree_util.tree_leaves_with_path(self.arrays):
            values = np.asarray(leaf)
            seal.update(f"{jax.tree_util.keystr(path)} {values.dtype} {values.shape}".encode())
            rows = max(1, BLOCK_BYTES // max(1, values[:1].nbytes))
            for start in range(0, len(values), rows):
                seal.update(np.ascontiguousarray(values[start : start + rows]).tobytes())
        return seal.hexdigest()

    def rows_from(self, start: ArrayLike, length: int) -> trees.PyTree:
        """So many examples from this number on."""
        return jax.tree.map(
            lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, length), self.arrays
        )


@jit(ONCE)
def _rows_of(examples: InMemory, numbers: np.ndarray) -> trees.PyTree:
    """In one program: every operation of JAX on its own is one to compile."""
    return examples.rows(numbers)


def numbers_of_some(num_examples: int, count: int) -> np.ndarray | None:
    """Of up to `count` examples that may stand for all; None where these are all."""
    # in runs of neighbours, because a page on disk is brought whole; sorted data have them all over
    num_runs = min(NUM_RUNS, count)
    length = count // num_runs
    if length * num_runs >= num_examples:
        return None
    starts = np.linspace(0, num_examples - length, num_runs).astype(np.int32)
    return (starts[:, None] + np.arange(length, dtype=np.int32)).ravel()
