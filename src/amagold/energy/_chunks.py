"""Walk over all examples a chunk at a time, so that temporaries never grow with the data."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.target import Posterior

Carry = TypeVar("Carry")

# temporaries of one chunk: large enough for full-speed matrix products, small beside the data
CHUNK_BYTES = 32 * 2**20


def chunk_size_for(target: Posterior, position: trees.PyTree) -> int:
    """How many examples fit in the byte budget, counting every intermediate value of the log
    likelihood of one example.
    """
    example = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), target.data
    )
    program = jax.make_jaxpr(target.log_likelihood)(position, example)
    values = [variable.aval for equation in program.eqns for variable in equation.outvars]
    per_example = trees.num_bytes(example) + trees.num_bytes(
        [value for value in values if hasattr(value, "shape")]
    )
    return max(1, min(target.num_examples, CHUNK_BYTES // max(1, per_example)))


def rows_at(data: trees.PyTree, start: Any, length: int) -> trees.PyTree:
    return jax.tree.map(lambda leaf: jax.lax.dynamic_slice_in_dim(leaf, start, length), data)


def fold(
    target: Posterior,
    position: trees.PyTree,
    visit: Callable[[Carry, trees.PyTree, Any, jax.Array | None], Carry],
    carry: Carry,
    chunk_size: int | None = None,
) -> Carry:
    """Visit all examples in order: `carry = visit(carry, rows, start, is_new)` for each chunk.

    The last chunk is moved back to end with the data; `is_new` is False for the rows already seen
    (None: all are new).
    """
    total = target.num_examples
    length = min(total, chunk_size or chunk_size_for(target, position))
    if length >= total:
        return visit(carry, target.data, 0, None)
    num_chunks = -(-total // length)

    def body(carry: Carry, index: jax.Array) -> tuple[Carry, None]:
        first = index * length
        start = jnp.minimum(first, total - length)
        is_new = start + jnp.arange(length) >= first
        return visit(carry, rows_at(target.data, start, length), start, is_new), None

    return jax.lax.scan(body, carry, jnp.arange(num_chunks))[0]


def log_likelihoods(
    target: Posterior, position: trees.PyTree, chunk_size: int | None = None
) -> jax.Array:
    """The log likelihood of every example, as one vector: the only thing of length N that
    is made.
    """
    kind = jax.eval_shape(target.log_likelihoods, position, rows_at(target.data, 0, 1)).dtype

    def visit(
        values: jax.Array, rows: trees.PyTree, start: Any, is_new: jax.Array | None
    ) -> jax.Array:
        found = target.log_likelihoods(position, rows)
        return (
            found
            if is_new is None
            else jax.lax.dynamic_update_slice_in_dim(values, found, start, 0)
        )

    return fold(target, position, visit, jnp.zeros(target.num_examples, kind), chunk_size)
