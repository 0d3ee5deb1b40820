"""Where the mean of a posterior is, to the next order after its mode.

With U = |theta - ref|^2_H / 2 + V, the mean slope of V over the Gaussian is, for a cubic V,

    t = E[grad V] = 1/2 sum_i U_i'''(z_i) (x_i . H^-1 x_i) x_i,

where z is one number; of a vector z = A theta it is 1/2 sum_i A_i^T grad tr(U_i'' A_i H^-1 A_i^T).
The Gaussian nearest to the posterior is about ref - H^-1 (g + t), not about the mode. For a skewed
posterior of many parameters that is a good part of what a proposal about the mode misses: the
linear part of a cubic is three fifths of its variance.
"""

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.compiling import ONCE, jit
from amagold.core.shapes import Matrix, Position, Predictor, PredictorPerRow, Rows, Scalar, Vector
from amagold.data import Chunk
from amagold.energy import _chunks as chunks
from amagold.energy._wide_sums import Wide, add_each, zeros_like
from amagold.mode._derivatives import density_derivatives, whole_hessian
from amagold.mode._rare_rows import RareRows
from amagold.mode._reference import Reference
from amagold.target import Posterior
from amagold.target._linear_bounds import SparsePredictor


def mean_slope(
    target: Posterior, reference: Reference, rare: RareRows | None
) -> tuple[Vector, Position]:
    """t of all rows but the rare ones, and the mean that t of all of them makes: one pass over the
    data of sparse rows.
    """
    position = reference.position
    hessian = whole_hessian(target, position, reference.hessian)
    inverse = np.linalg.inv(hessian)
    whole, known = _tilt(target, position, jnp.asarray(inverse, jnp.float32), rare)
    of_prior = density_derivatives(target.smooth_log_prior, position).gradient
    slope = np.asarray(reference.gradient, np.float64) + np.asarray(of_prior, np.float64)
    center = trees.known_numbers(position) - inverse @ (slope + np.asarray(whole, np.float64))
    return known, trees.as_position(trees.unflatten_like(center.astype(np.float32), position))


@jit(ONCE)
def _tilt(
    target: Posterior, position: Position, inverse: Matrix, rare: RareRows | None
) -> tuple[Vector, Vector]:
    """t of all rows, and of all but the rare ones."""
    bounds = target.bounds
    assert bounds is not None
    predictor = bounds.predictor
    assert isinstance(predictor, SparsePredictor)

    def weight(row: trees.PyTree) -> Predictor:
        """grad tr(U'' A H^-1 A^T) / 2 at z, the last three held."""
        spread = predictor.squared(row, inverse)
        bend = jax.hessian(bounds.outcome)
        slope = jax.grad(lambda z: jnp.sum(bend(z, row) * spread))
        return -0.5 * slope(predictor(position, row))

    def summed(rows: Rows, weights: PredictorPerRow) -> Vector:
        def along(at: Position) -> Scalar:
            return jnp.sum(weights * jax.vmap(predictor, in_axes=(None, 0))(at, rows))

        return trees.flatten(jax.grad(along)(position))

    def visit(total: Wide, chunk: Chunk) -> Wide:
        weights = chunk.only_new(jax.vmap(weight)(chunk.rows))
        return add_each(total, summed(chunk.rows, weights))

    begin = zeros_like(trees.flatten(position))
    whole = chunks.fold(target, position, visit, begin).high
    if rare is None:
        return whole, whole
    return whole, whole - summed(rare.rows, jax.vmap(weight)(rare.rows))
