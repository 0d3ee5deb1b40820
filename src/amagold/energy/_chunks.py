"""Walk over all examples a chunk at a time, so that temporaries never grow with the data."""

from collections.abc import Callable
from typing import TypeVar

import jax
import jax.numpy as jnp
from jax import Array

from amagold.core import trees
from amagold.core.array_types import Float
from amagold.core.shapes import Form, PerExample, Position
from amagold.data import Chunk
from amagold.target import Posterior, Target

Carry = TypeVar("Carry")

# temporaries of one chunk: large enough for full-speed matrix products, small beside the data
TEMPORARY_BYTES = 32 * 2**20


def chunk_size_for(target: Target, position: Form) -> int:
    """How many examples fit in the byte budget, counting every intermediate value of the log
    likelihood of one example.
    """
    if not isinstance(target, Posterior):
        return 1
    program = jax.make_jaxpr(target.log_likelihood)(position, target.example)
    values = [variable.aval for equation in program.eqns for variable in equation.outvars]
    per_example = trees.num_bytes(target.example) + trees.num_bytes(
        [value for value in values if hasattr(value, "shape")]
    )
    return max(1, min(target.num_examples, TEMPORARY_BYTES // max(1, per_example)))


def fold(
    target: Target,
    position: Form,
    visit: Callable[[Carry, Chunk], Carry],
    carry: Carry,
    chunk_size: int | None = None,
) -> Carry:
    """`target.examples.fold`, with as many examples at a time as the byte budget has room for."""
    return target.examples.fold(visit, carry, chunk_size or chunk_size_for(target, position))


def log_likelihoods(
    target: Posterior, position: Position, chunk_size: int | None = None
) -> Float[Array, " {target.num_examples}"]:
    """The log likelihood of every example, as one vector: the only thing of length N that
    is made.
    """
    kind = jax.eval_shape(target.log_likelihood, position, target.example).dtype

    def visit(values: PerExample, chunk: Chunk) -> PerExample:
        return chunk.write(values, target.log_likelihoods(position, chunk.rows))

    return fold(target, position, visit, jnp.zeros(target.num_examples, kind), chunk_size)
