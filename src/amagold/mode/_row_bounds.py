"""How much each example can matter, from its row: what exact tests draw examples by.

One walk over the data keeps the largest bound of every few neighbours, a slot, so that memory does
not grow with the data.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.core import trees
from amagold.core.array_types import Float, Float32
from amagold.core.compiling import OFTEN, jit
from amagold.core.shapes import Example, HostMatrix, Matrix, Position, Scalar
from amagold.data import Chunk
from amagold.energy import _chunks as chunks
from amagold.energy._wide_sums import Wide, add_to, zero
from amagold.target import Posterior
from amagold.target._linear_bounds import LinearBounds, SparsePredictor

MOST_SLOTS = 2**20  # up to this many examples each has its own


@runtime_checkable
class RowBound(Protocol):
    """`bound(example)`: c_i, and a_i, the largest change of z_i over a step of length one. A
    record, whose numbers are traced.
    """

    def __call__(self, example: Example) -> tuple[Scalar, Scalar]: ...


class BoundSums(NamedTuple):
    """What a walk over all examples keeps of their bounds."""

    of_slots: Float32[Array, " slots"]  # the largest c_i of each slot's rows
    total: Wide  # of all c_i
    largest_norm: Scalar  # of all a_i

    def plus(self, other: "BoundSums") -> "BoundSums":
        return BoundSums(
            jnp.maximum(self.of_slots, other.of_slots),
            self.total.plus(other.total),
            jnp.maximum(self.largest_norm, other.largest_norm),
        )


class Norm(NamedTuple):
    """In which distances are measured: |v|^2 = v . L L^T v, with L L^T the Hessian, or nearly."""

    whitening: Matrix  # L^T
    unwhitening: Matrix  # L^-1

    @classmethod
    def of_matrix(cls, matrix: HostMatrix) -> "Norm":
        """Raises `numpy.linalg.LinAlgError` where the matrix does not curve upwards."""
        return cls.of_factor(np.linalg.cholesky(matrix))

    @classmethod
    def of_factor(cls, factor: HostMatrix) -> "Norm":
        both = factor.T, np.linalg.inv(factor)
        return cls(*(jax.device_put(np.ascontiguousarray(each, np.float32)) for each in both))


@trees.record(static=("bounds", "order"))
class TaylorBound:
    """c_i = scale_i a_i^(order + 1), of the remainder about a position; a_i = |A_i L^-T|. Or c_i as
    it is found within a ball.
    """

    bounds: LinearBounds
    order: int
    position: Position
    norm: Norm

    def __call__(self, example: Example) -> tuple[Scalar, Scalar]:
        if self.bounds.within is not None:
            z = self.bounds.predictor(self.position, example)
            rows = slopes(self.bounds, self.position, example) @ self.norm.unwhitening.T
            radius = self.bounds.radius(rows.shape[1])
            found = self.bounds.within(z, example, rows, radius, self.order)
            return found, jnp.sqrt(jnp.sum(rows**2))
        norm = jnp.sqrt(squared_norm(self.bounds, self.position, example, self.norm.unwhitening))
        scale = jnp.float32(1.0)
        if self.bounds.scale is not None:
            z = self.bounds.predictor(self.position, example)
            scale = self.bounds.scale(z, example)
        return scale * norm ** (self.order + 1), norm


def slopes(
    bounds: LinearBounds, position: Position, example: Example
) -> Float[Array, "predictors parameters"]:
    """A_i with z_i = A_i theta + constant, one row for each number that the example's predictor
    has.
    """
    return jax.jacrev(
        lambda at: jnp.atleast_1d(bounds.predictor(trees.unflatten_like(at, position), example))
    )(trees.flatten(position))


def squared_norm(
    bounds: LinearBounds, position: Position, example: Example, unwhitening: Matrix
) -> Scalar:
    """|A_i L^-T|^2, of the operator theta -> z_i from the norm of L L^T."""
    if isinstance(bounds.predictor, SparsePredictor):
        rows = jnp.atleast_2d(bounds.predictor.times(example, unwhitening.T))
    else:
        rows = slopes(bounds, position, example) @ unwhitening.T
    return jnp.sum(rows**2) if rows.shape[0] == 1 else jnp.linalg.eigvalsh(rows @ rows.T)[-1]


def rows_per_slot(num_examples: int) -> int:
    """B, a power of two: one, unless there are more examples than slots."""
    return _power_of_two(-(-num_examples // MOST_SLOTS))


def num_slots(num_examples: int) -> int:
    """A power of two, so that random bits name each slot alike; at least one slot is empty, where
    the walk's last chunk may reach to.
    """
    return _power_of_two(-(-num_examples // rows_per_slot(num_examples)) + 1)


def no_bounds(num_examples: int) -> BoundSums:
    """What a walk begins with."""
    return BoundSums(jnp.zeros(num_slots(num_examples)), zero(), jnp.float32(0.0))


def with_chunk(sums: BoundSums, chunk: Chunk, bound: RowBound, num_examples: int) -> BoundSums:
    """The sums with a chunk's examples."""
    weights, norms = jax.vmap(bound)(chunk.rows)
    weights = chunk.only_new(weights)
    each = rows_per_slot(num_examples)
    # the slots that the chunk touches, which may begin and end within one
    length = -(-weights.shape[0] // each) + (each > 1)
    padded = jax.lax.dynamic_update_slice_in_dim(
        jnp.zeros(length * each, weights.dtype), weights, chunk.start % each, 0
    )
    first = chunk.start // each
    before = jax.lax.dynamic_slice_in_dim(sums.of_slots, first, length)
    largest = jnp.maximum(before, padded.reshape(length, each).max(axis=1))
    return BoundSums(
        jax.lax.dynamic_update_slice_in_dim(sums.of_slots, largest, first, 0),
        add_to(sums.total, weights),
        jnp.maximum(sums.largest_norm, norms.max()),
    )


@jit(OFTEN, "before")
def bound_sums(
    target: Posterior, position: Position, bound: RowBound, before: int = 0
) -> BoundSums:
    """One walk over the data, which come after `before` other examples."""
    num_examples = before + target.num_examples

    def visit(sums: BoundSums, chunk: Chunk) -> BoundSums:
        there = chunk._replace(start=chunk.start + before)
        return with_chunk(sums, there, bound, num_examples)

    chunk_size = max(1, chunks.chunk_size_for(target, position) // 4)
    return chunks.fold(target, position, visit, no_bounds(num_examples), chunk_size)


def _power_of_two(at_least: int) -> int:
    return 1 << max(0, at_least - 1).bit_length()
