"""The energy of all data and its first two derivatives at a position, in one pass."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.compiling import OFTEN, ONCE, jit
from amagold.core.shapes import HostMatrix, Matrix, PerRow, Position, Scalar, Vector
from amagold.data import Chunk
from amagold.energy import _chunks as chunks
from amagold.energy._wide_sums import Wide, add_each, add_to, zero, zeros_like
from amagold.mode._class_shifts import class_shifts
from amagold.mode._row_bounds import BoundSums, TaylorBound, no_bounds, with_chunk
from amagold.target import Posterior
from amagold.target._linear_bounds import SparsePredictor

Sums = tuple[Wide, Wide, Wide | None, BoundSums | None]

CACHE_BYTES = 2**20  # of second derivatives on the way: what the processor's cache holds


class KnownBounds(NamedTuple):
    """What a walk over all examples found of their bounds about a position."""

    bound: TaylorBound
    sums: BoundSums


class Derivatives(NamedTuple):
    """Of sum_i U_i, U_i = -log likelihood of example i, over the flattened position; sums over
    chunks are accumulated in float64.
    """

    energy: Wide
    gradient: Vector
    hessian: Matrix | None
    bounds: KnownBounds | None = None  # about the position, where they were asked for


def has_sparse_rows(target: object) -> bool:
    """Whether rows are zero but for a few places, so that sums over pairs of places are quick."""
    bounds = target.bounds if isinstance(target, Posterior) else None
    return bounds is not None and isinstance(bounds.predictor, SparsePredictor)


@jit(OFTEN, "order")
def derivatives_at(
    target: Posterior, position: Position, order: int, bound: TaylorBound | None = None
) -> Derivatives:
    """The derivatives up to the order, 1 or 2, and in the same pass the examples' bounds."""
    flat = trees.flatten(position)

    def energy(at: Vector, chunk: Chunk) -> tuple[Scalar, PerRow]:
        values = -target.log_likelihoods(trees.unflatten_like(at, position), chunk.rows)
        values = chunk.only_new(values)
        return values.sum(), values

    bounds = target.bounds
    predictor = None if bounds is None else bounds.predictor
    is_sparse = isinstance(predictor, SparsePredictor)

    def curvature(chunk: Chunk, slope: Callable[..., tuple[Vector, PerRow]]) -> Matrix:
        if bounds is None or not isinstance(predictor, SparsePredictor):
            return jax.jacfwd(lambda at: slope(at, chunk)[0])(flat)
        # sum_i -A_i^T f_i''(z_i) A_i
        z = jax.vmap(bounds.predictor, in_axes=(None, 0))(position, chunk.rows)
        bent = jax.vmap(jax.hessian(bounds.outcome))(z, chunk.rows)
        return predictor.gram(chunk.rows, chunk.only_new(-bent))

    def visit(carry: Sums, chunk: Chunk) -> Sums:
        slope = jax.grad(energy, has_aux=True)
        gradient, values = slope(flat, chunk)
        square = carry[2]
        if square is not None:
            square = add_each(square, curvature(chunk, slope))
        sums = carry[3]
        if sums is not None and bound is not None:
            sums = with_chunk(sums, chunk, bound, target.num_examples)
        return add_to(carry[0], values), add_each(carry[1], gradient), square, sums

    nothing = zeros_like(jnp.zeros((flat.shape[0], flat.shape[0]))) if order == 2 else None
    chunk_size = None
    if order == 2 and not is_sparse:
        # every parameter has its own tangent, and all of them at once should stay in the cache
        most = chunks.chunk_size_for(target, position)
        chunk_size = max(
            1, min(most // flat.shape[0], max(256, CACHE_BYTES // (4 * flat.shape[0])))
        )
    begin = (
        zero(),
        zeros_like(flat),
        nothing,
        None if bound is None else no_bounds(target.num_examples),
    )
    total, gradient, hessian, sums = chunks.fold(target, position, visit, begin, chunk_size)
    return Derivatives(
        total,
        gradient.high,
        None if hessian is None else hessian.high,
        None if bound is None or sums is None else KnownBounds(bound, sums),
    )


@jit(ONCE)
def density_derivatives(
    log_density: Callable[[Position], Scalar], position: Position
) -> Derivatives:
    """The same of -log density, computed whole; the function is a record, whose numbers are
    traced.
    """

    def energy(at: Vector) -> Scalar:
        return -log_density(trees.unflatten_like(at, position))

    flat = trees.flatten(position)
    return Derivatives(
        add_to(zero(), energy(flat)[None]), jax.grad(energy)(flat), jax.hessian(energy)(flat)
    )


def whole_hessian(target: Posterior, position: Position, of_data: Matrix | None) -> HostMatrix:
    """The Hessian of the whole energy in float64, given that of all data."""
    shifts = class_shifts(target, position)
    known = np.asarray(of_data, np.float64)
    known = known if shifts is None else shifts.known_curvature(known)
    return known + np.asarray(
        density_derivatives(target.smooth_log_prior, position).hessian, np.float64
    )
