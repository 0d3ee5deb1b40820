"""The curvature of the energy at a position: a first mass, dispersed starts, and what a plan
predicts from.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.core import trees
from amagold.core.array_types import Float, Real
from amagold.core.shapes import (
    HostMatrix,
    HostVector,
    Matrix,
    Position,
    RandomKey,
    Scalar,
    Vector,
)
from amagold.data import Chunk
from amagold.energy import _chunks as chunks
from amagold.mode._class_shifts import class_shifts
from amagold.mode._derivatives import (
    Derivatives,
    density_derivatives,
    derivatives_at,
    has_sparse_rows,
    whole_hessian,
)
from amagold.mode._spectrum import Spectrum, ritz_spectrum
from amagold.target import Density, Posterior, Target

# up to this many parameters the whole Hessian is taken, however much data there is
DENSE_PARAMETERS = 256
# and up to this many where (parameters)^2 x examples, some seconds of work, is no more
MOST_DENSE, DENSE_WORK = 2048, 10**11
# Hessian-vector products done together: enough for matrix products, few enough for memory
VECTORS_AT_ONCE = 16
NUM_PROBES = 32  # random vectors that estimate the diagonal of a larger Hessian
NUM_LANCZOS = 16  # Hessian-vector products that estimate a larger Hessian's spectrum
# of eigenvalues in units where the diagonal is one: what float32 sums can tell from zero
CLEARLY_POSITIVE = 1e-5
MODEST = 0.1  # of 1 + |theta|: what is a small change of a parameter when nothing better is known
# what an eigenvalue that is not positive becomes at least, in the same units
EIGENVALUE_FLOOR = 1e-3

Values = TypeVar("Values", jax.Array, np.ndarray)
Vectors = Float[Array, "vectors parameters"]
# a diagonal, or a whole matrix
MassNumbers = (
    Real[Array | np.ndarray, " parameters"] | Real[Array | np.ndarray, "parameters parameters"]
)


@dataclass(frozen=True, eq=False)
class Curvature:
    """The Hessian H of U = -log pi, made positive: a matrix over all parameters in order, or its
    diagonal.

    Where H has directions that do not curve upwards (`is_positive` is False), their eigenvalues are
    replaced by absolute values with a floor, so that what follows from H stays usable, if rough.
    """

    matrix: HostMatrix | None  # where it is whole
    diagonal: HostVector
    is_positive: bool  # whether H itself was clearly positive definite
    # F with H^-1 = F F^T: a matrix, or the diagonal's one over root
    factor: HostMatrix | HostVector
    own_spectrum: Spectrum  # of H whitened by its own diagonal
    # a step for every parameter that is small beside its size, for positions that are no mode
    modest: HostVector
    # of the log likelihood alone, where the pass over the data gave all of them
    of_data: Derivatives | None = None

    @property
    def is_dense(self) -> bool:
        return self.matrix is not None

    @property
    def num_parameters(self) -> int:
        return len(self.diagonal)

    def variances(self) -> HostVector:
        """The Laplace approximation's variance of every parameter."""
        return np.sum(self.factor**2, axis=1) if self.is_dense else self.factor**2

    def modest_variances(self) -> HostVector:
        """The same, where it is no larger than a modest step: for a curvature that was not taken at
        a mode.
        """
        return np.minimum(self.variances(), self.modest**2)

    def whitened_by(self, mass: MassNumbers) -> tuple[Spectrum, HostMatrix | None]:
        """The spectrum of H in units of a mass, and the directions (as columns over W g, M^-1 = W^T
        W) that it belongs to.

        Args:
          mass: a vector or a square matrix over all parameters in order. Without the whole Hessian
            another diagonal than its own changes the spectrum only by the typical ratio of the two,
            and the directions are None.
        """
        mass = np.asarray(mass, np.float64)
        if self.matrix is None:
            return self.own_spectrum.scaled(float(np.median(self.diagonal / mass))), None
        whitening = whitening_of(mass)
        eigenvalues, directions = np.linalg.eigh(whitening @ self.matrix @ whitening.T)
        return Spectrum(
            np.maximum(eigenvalues, np.finfo(np.float64).tiny), np.ones_like(eigenvalues)
        ), directions


def whitening_of(mass: HostVector | HostMatrix) -> HostMatrix:
    """W with M^-1 = W^T W, for a diagonal or a matrix."""
    return (
        np.diag(1.0 / np.sqrt(mass)) if mass.ndim == 1 else np.linalg.inv(np.linalg.cholesky(mass))
    )


def curvature_at(
    target: Target, position: trees.PyTree, of_data: Derivatives | None = None
) -> Curvature:
    """The Hessian of U: whole for up to 256 parameters, or 2,048 where the data are few, beyond
    that its diagonal from 32 random probes.

    Args:
      target: an `amagold.Posterior` or `amagold.Density`.
      position: where; usually the mode.
      of_data: what the search for the mode has found there, to save a pass over the data.
    """
    position = trees.as_position(position)
    modest = MODEST * (1.0 + np.abs(trees.known_numbers(position)))
    is_sparse = has_sparse_rows(target)
    if is_worth_it(trees.size(position), max(1, target.num_examples), is_sparse=is_sparse):
        if of_data is None and isinstance(target, Posterior):
            of_data = derivatives_at(target, position, 2)
        hessian, shifts = _hessian(target, position, of_data), class_shifts(target, position)
        basis = None if shifts is None else shifts.basis
        return _dense_curvature(hessian, modest, of_data, basis)
    diagonal, error, steps = _probe(target, position)
    diagonal, error, along, across = (
        np.asarray(part, np.float64)
        for part in (diagonal, error, steps.diagonal, steps.off_diagonal)
    )
    found = ritz_spectrum(along, across, len(diagonal))
    return _diagonal_curvature(diagonal, error, found, modest)


def is_worth_it(num_parameters: int, num_examples: int, *, is_sparse: bool = False) -> bool:
    """Whether the whole Hessian is worth its pass over the data, which takes little where rows are
    zero but for a few places.
    """
    work = 0 if is_sparse else num_parameters**2 * num_examples
    is_quick = num_parameters <= MOST_DENSE and work <= DENSE_WORK
    return num_parameters <= DENSE_PARAMETERS or is_quick


def _dense_curvature(
    hessian: HostMatrix,
    modest: HostVector,
    of_data: Derivatives | None,
    basis: HostMatrix | None = None,
) -> Curvature:
    """The curvature from a whole Hessian, looked at in the coordinates of a basis."""
    hessian = np.nan_to_num((hessian + hessian.T) / 2.0, nan=0.0, posinf=0.0, neginf=0.0)
    hessian = hessian if basis is None else basis.T @ hessian @ basis
    diagonal = np.diag(hessian)
    # eigenvalues in units where the diagonal is one, so that float32 rounding of large entries does
    # not swamp the small ones; what the prior alone says along a basis is not rounded
    is_exact = basis is not None and bool(np.all(diagonal > 0))
    scales = np.sqrt(diagonal if is_exact else _positive(np.abs(diagonal)))
    eigenvalues, directions = np.linalg.eigh(hessian / np.outer(scales, scales))
    is_positive = bool(np.all(diagonal > 0) and eigenvalues.min() > CLEARLY_POSITIVE)
    if not is_positive:
        eigenvalues = np.maximum(np.abs(eigenvalues), EIGENVALUE_FLOOR)
    root = scales[:, None] * directions * np.sqrt(eigenvalues)
    factor = directions / np.sqrt(eigenvalues) / scales[:, None]
    if basis is not None:
        root, factor = basis @ root, basis @ factor
    matrix = root @ root.T
    spectrum = Spectrum(
        np.linalg.eigvalsh(matrix / np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)))),
        np.ones(len(matrix)),
    )
    return Curvature(matrix, np.diag(matrix).copy(), is_positive, factor, spectrum, modest, of_data)


class Tridiagonal(NamedTuple):
    """What Lanczos' recurrence makes of a matrix."""

    diagonal: Float[Array, "*steps"]
    off_diagonal: Float[Array, "*steps"]


def _diagonal_curvature(
    diagonal: HostVector, error: HostVector, found: Spectrum, modest: HostVector
) -> Curvature:
    """The curvature from the probes' mean, their standard error, and the spectrum by Lanczos."""
    usable = _positive(
        np.nan_to_num(_surely(np.abs(diagonal), error), nan=0.0, posinf=0.0, neginf=0.0)
    )
    is_positive = bool(np.all(diagonal > 0) and found.eigenvalues.min() > CLEARLY_POSITIVE)
    spectrum = Spectrum(np.maximum(np.abs(found.eigenvalues), EIGENVALUE_FLOOR), found.counts)
    return Curvature(None, usable, is_positive, 1.0 / np.sqrt(usable), spectrum, modest)


def _surely(diagonal: Values, error: Values) -> Values:
    """A diagonal that the probes cannot tell from zero is taken to be as large as their error, so
    that no step is too long.
    """
    return (diagonal**2 + error**2) ** 0.5


def _positive(values: HostVector) -> HostVector:
    """The values, with those that are zero or next to it raised to a small share of the typical
    one.
    """
    typical = np.median(values[values > 0]) if np.any(values > 0) else 1.0
    return np.maximum(values, 1e-8 * typical) if np.any(values > 0) else np.ones_like(values)


def _hessian(target: Target, position: Position, of_data: Derivatives | None) -> HostMatrix:
    if isinstance(target, Posterior) and of_data is not None:
        return whole_hessian(target, position, of_data.hessian)
    if trees.size(position) <= DENSE_PARAMETERS:
        # the program that the search for the mode has compiled
        return np.asarray(
            density_derivatives(target.smooth_log_prior, position).hessian, np.float64
        )
    return np.asarray(_rows(target, position), np.float64)


@jax.jit
def _rows(target: Density, position: Position) -> Matrix:
    """Every row H e_j by a Hessian-vector product, a few at a time."""
    like = trees.flatten(position)
    return _products(target, position, jnp.eye(like.shape[0], dtype=like.dtype))


@jax.jit
def _probe(target: Target, position: Position) -> tuple[Vector, Vector, Tridiagonal]:
    """The diagonal of H by random signs, its standard error, and Lanczos' recurrence on H whitened
    by it.
    """
    like = trees.flatten(position)
    probe_key, start_key = jax.random.split(jax.random.key(0))

    def add_probe(
        carry: tuple[Vector, Vector], key: RandomKey
    ) -> tuple[tuple[Vector, Vector], None]:
        signs = jax.random.rademacher(key, like.shape, like.dtype)
        # E[v * H v] = diag(H) for random signs v
        found = signs * _products(target, position, signs[None])[0]
        return (carry[0] + found, carry[1] + found**2), None

    nothing = (jnp.zeros_like(like), jnp.zeros_like(like))
    (total, squares), _ = jax.lax.scan(add_probe, nothing, jax.random.split(probe_key, NUM_PROBES))
    diagonal = total / NUM_PROBES
    error = jnp.sqrt(jnp.maximum(squares / NUM_PROBES - diagonal**2, 0.0) / NUM_PROBES)
    sure = _surely(diagonal, error)
    whitening = 1.0 / jnp.sqrt(
        jnp.maximum(sure, jnp.maximum(1e-8 * jnp.median(sure), jnp.finfo(like.dtype).tiny))
    )

    def lanczos(
        carry: tuple[Vector, Vector, Scalar], _: None
    ) -> tuple[tuple[Vector, Vector, Scalar], Tridiagonal]:
        before, now, length = carry
        # H~ q_k = b_{k-1} q_{k-1} + a_k q_k + b_k q_{k+1}
        image = whitening * _products(target, position, (whitening * now)[None])[0]
        along = jnp.dot(now, image)
        rest = image - along * now - length * before
        next_length = jnp.linalg.norm(rest)
        return (
            now,
            rest / jnp.maximum(next_length, jnp.finfo(like.dtype).tiny),
            next_length,
        ), Tridiagonal(along, next_length)

    start = jax.random.rademacher(start_key, like.shape, like.dtype) / jnp.sqrt(like.shape[0])
    _, steps = jax.lax.scan(
        lanczos, (jnp.zeros_like(start), start, jnp.zeros((), like.dtype)), None, length=NUM_LANCZOS
    )
    return diagonal, error, steps


def _products(target: Target, position: Position, vectors: Vectors) -> Vectors:
    """H v for every row v, over the data a chunk at a time."""
    at_once = min(len(vectors), VECTORS_AT_ONCE)

    def of_energy(function: Callable[[Position], Scalar]) -> Vectors:
        def product(vector: Vector) -> Vector:
            direction = trees.unflatten_like(vector, position)
            return trees.flatten(jax.jvp(jax.grad(function), (position,), (direction,))[1])

        return -jax.lax.map(product, vectors, batch_size=at_once)

    def visit(total: Vectors, chunk: Chunk) -> Vectors:
        def log_likelihood(at: Position) -> Scalar:
            return chunk.only_new(target.log_likelihoods(at, chunk.rows)).sum()

        return total + of_energy(log_likelihood)

    chunk_size = max(1, chunks.chunk_size_for(target, position) // at_once)
    return chunks.fold(target, position, visit, of_energy(target.smooth_log_prior), chunk_size)
