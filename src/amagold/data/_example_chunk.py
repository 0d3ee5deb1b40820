"""A part of the examples, as a walk over all of them meets it."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from amagold.core import trees


class Chunk(NamedTuple):
    """Some examples in a row. The last chunk is moved back to end with the data, so that all are of
    one length; what it shares with the one before is not new.
    """

    rows: trees.PyTree
    start: Any  # the number of the first row
    is_new: jax.Array | None  # False for rows that were seen before; None where all are new

    def only_new(self, values: jax.Array) -> jax.Array:
        """One value for each row, zero for the rows that were seen before."""
        return values if self.is_new is None else jnp.where(self.is_new, values, 0.0)

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
