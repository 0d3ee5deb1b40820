"""A part of the examples, as a walk over all of them meets it, and the walk."""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from amagold.core import trees

Carry = TypeVar("Carry")
Held = TypeVar("Held")


class Chunk(NamedTuple):
    """Some examples in a row. The last chunk is moved back to end with the data, so that all are of
    one length; what it shares with the one before is not new.
    """

    rows: trees.PyTree
    start: Any  # the number of the first row
    is_new: jax.Array | None  # False for rows that were seen before; None where all are new

    def only_new(self, values: jax.Array) -> jax.Array:
        """What there is for each row, zero for the rows that were seen before."""
        if self.is_new is None:
            return values
        return jnp.where(self.is_new.reshape(-1, *[1] * (values.ndim - 1)), values, 0.0)

    def write(self, found: jax.Array, values: jax.Array) -> jax.Array:
        """A vector over all examples with these rows' values put in."""
        if self.is_new is None:
            return values
        return jax.lax.dynamic_update_slice_in_dim(found, values, self.start, 0)

    def moved(self, by: Any, counts: Any) -> "Chunk":
        """The chunk among more examples, of which it is no longer the whole; of its rows only those
        count that `counts` says.
        """
        length = jax.tree.leaves(self.rows)[0].shape[0]
        is_new = jnp.ones(length, bool) if self.is_new is None else self.is_new
        return self._replace(start=self.start + by, is_new=is_new & counts)


def scan_chunks(
    flag: jax.Array,
    num_examples: int,
    length: int,
    rows_from: Callable[[jax.Array], trees.PyTree],
    visit: Callable[[Carry, Chunk, Held], Carry],
    carry: Carry,
    held: Held,
) -> Carry:
    """Visit chunks of this length where the flag says so; `rows_from` gives the rows of one from
    its first on.
    """
    num_chunks = -(-num_examples // length)

    def body(at: tuple[jax.Array, Carry]) -> tuple[jax.Array, Carry]:
        index, carry = at
        # tied to the index, because the compiler would move work that does not change out of the
        # loop, and do it always
        now, index = jax.lax.optimization_barrier((held, index))
        return index + 1, visit(carry, chunk_at(index, num_examples, length, rows_from), now)

    def goes_on(at: tuple[jax.Array, Carry]) -> jax.Array:
        return flag & (at[0] < num_chunks)

    return jax.lax.while_loop(goes_on, body, (jnp.int32(0), carry))[1]


def chunk_at(
    index: jax.Array,
    num_examples: int,
    length: int,
    rows_from: Callable[[jax.Array], trees.PyTree],
) -> Chunk:
    """The chunk of this number, moved back where it would end beyond the data."""
    first = index * length
    start = jnp.minimum(first, num_examples - length)
    return Chunk(rows_from(start), start, start + jnp.arange(length) >= first)
