"""Examples in the host's memory or in its files, for devices that have a memory of their own: rows
travel when they are asked for, many at a time.
"""

import hashlib
from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from amagold.core import trees
from amagold.data._example_chunk import Chunk, scan_chunks
from amagold.data._fields import ColumnMoments
from amagold.data._in_memory import InMemory, numbers_of_some

Carry = TypeVar("Carry")
Held = TypeVar("Held")


class HostRows:
    """Arrays of NumPy, mapped or not, that a program knows by their form alone: another set of the
    same form is another program.
    """

    def __init__(self, arrays: trees.PyTree, scattered: trees.PyTree) -> None:
        self.arrays, self.scattered = arrays, scattered

    def rows(self, numbers: np.ndarray) -> trees.PyTree:
        """The rows of these numbers; sorted first, so that a disk is read in one direction."""
        flat = np.asarray(numbers).ravel()
        order = np.argsort(flat, kind="stable")
        back = np.empty_like(order)
        back[order] = np.arange(len(order))

        def take(leaf: np.ndarray) -> np.ndarray:
            found = np.asarray(leaf[flat[order]])[back]
            return found.reshape(*np.shape(numbers), *leaf.shape[1:])

        return jax.tree.map(take, self.scattered)

    def chunks(self, starts: Any, length: int) -> trees.PyTree:
        """So many rows from each of these on; chains that go together ask for the same ones."""
        places = np.asarray(starts)

        def take(leaf: np.ndarray) -> np.ndarray:
            # a chain that has not asked stays at the first chunk, and looks at nothing
            first = int(places.max())
            rows = np.ascontiguousarray(leaf[first : first + length])
            return np.broadcast_to(rows, (*places.shape, *rows.shape))

        return jax.tree.map(take, self.arrays)


@trees.record(static=("host", "seal", "moments_bytes"))
class OnHost:
    """What a program asks for is brought by a call back to the host."""

    host: HostRows
    seal: str
    moments_bytes: bytes  # `ColumnMoments` of all words; empty where they are not known

    @property
    def num_examples(self) -> int:
        return len(jax.tree.leaves(self.host.arrays)[0])

    @property
    def example(self) -> trees.PyTree:
        return InMemory(self.host.arrays).example

    @property
    def is_concrete(self) -> bool:
        return True

    @property
    def moments(self) -> ColumnMoments | None:
        return ColumnMoments.from_bytes(self.num_examples, self.moments_bytes)

    def rows(self, numbers: ArrayLike) -> trees.PyTree:
        asked = jnp.asarray(numbers)
        form = self._form(asked.shape)
        return jax.pure_callback(self.host.rows, form, asked, vmap_method="expand_dims")

    def fold(self, visit: Callable[[Carry, Chunk], Carry], carry: Carry, chunk_size: int) -> Carry:
        return self.scan_if(
            jnp.bool_(True), lambda carry, chunk, _: visit(carry, chunk), carry, (), chunk_size
        )

    def scan_if(
        self,
        flag: jax.Array,
        visit: Callable[[Carry, Chunk, Held], Carry],
        carry: Carry,
        held: Held,
        chunk_size: int,
    ) -> Carry:
        length = min(self.num_examples, chunk_size)

        def rows_from(start: jax.Array) -> trees.PyTree:
            return jax.pure_callback(
                lambda starts: self.host.chunks(starts, length),
                self._form((length,)),
                start,
                vmap_method="expand_dims",
            )

        return scan_chunks(flag, self.num_examples, length, rows_from, visit, carry, held)

    def some(self, count: int) -> InMemory:
        numbers = numbers_of_some(self.num_examples, count)
        chosen = np.arange(self.num_examples) if numbers is None else numbers
        return InMemory(jax.tree.map(jnp.asarray, self.host.rows(chosen)))

    def fingerprint(self) -> str:
        return hashlib.sha256(self.seal.encode()).digest().hex()

    def anyone(self, flag: jax.Array) -> jax.Array:
        """Devices need not go together: each asks for its own rows."""
        return flag

    def _form(self, leading: tuple[int, ...]) -> trees.PyTree:
        return jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct((*leading, *leaf.shape[1:]), leaf.dtype),
            self.host.arrays,
        )


def on_host(
    arrays: trees.PyTree, scattered: trees.PyTree, seal: str, moments: ColumnMoments | None
) -> OnHost:
    """Memory-mapped NumPy arrays, for devices that are not the host."""
    known = b"" if moments is None else moments.as_bytes()
    return OnHost(HostRows(arrays, scattered), seal, known)
