"""Variances of the warm-up draws, over chains and transitions, in one pass and in constant
memory.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.trajectory._mass_matrix import DenseMass, DiagonalMass, Mass, as_mass

DRAWS_PER_EFFECTIVE = 5.0  # of a warm-up
PRIOR_DRAWS = 5.0  # the earlier estimate counts as much as this many draws


class Moments(NamedTuple):
    """Count, mean and summed squared deviations; `squares` is a vector (diagonal) or a matrix
    (dense), or empty.
    """

    num_draws: jax.Array
    mean: jax.Array
    squares: jax.Array


def no_moments(kind: str | None, size: int) -> Moments:
    """Nothing seen yet."""
    width = 0 if kind is None else size
    shape = (width, width) if kind == "dense" else (width,)
    # by NumPy, because every operation of JAX on its own is a program to compile
    return Moments(
        *map(
            jax.device_put,
            (np.float32(0.0), np.zeros(width, np.float32), np.zeros(shape, np.float32)),
        )
    )


def update(
    moments: Moments, is_collecting: jax.Array, positions: trees.PyTree, axis_name: str | None
) -> Moments:
    """Add the positions of all chains, wherever they run."""
    if moments.mean.shape[0] == 0:
        return moments
    points = jax.vmap(trees.flatten)(positions).astype(jnp.float32)

    def total(values: jax.Array) -> jax.Array:
        return values if axis_name is None else jax.lax.psum(values, axis_name)

    added = total(jnp.float32(points.shape[0]))
    mean = total(points.sum(axis=0)) / added
    squares = total(_squares(points - mean, moments.squares.ndim))
    # two groups joined (Chan et al.): S = S_a + S_b + n_a n_b / (n_a + n_b) (mean_b - mean_a)^2
    count = moments.num_draws + added
    shift = mean - moments.mean
    between = moments.num_draws * added / count * _squares(shift[None], moments.squares.ndim)
    joined = Moments(
        count, moments.mean + shift * added / count, moments.squares + squares + between
    )
    return trees.where(is_collecting & trees.all_finite(joined), joined, moments)


def estimate_mass(moments: Moments, earlier: Mass) -> Mass:
    """M^-1 = the covariance of the draws, in the form of the earlier mass; parameters that did not
    move keep theirs.
    """
    count = float(moments.num_draws)
    if count < 2:
        return earlier
    if isinstance(earlier, DiagonalMass):
        before = np.asarray(earlier.inverse_scale, np.float64) ** 2
        squares = np.asarray(moments.squares, np.float64)
        found = (np.diagonal(squares) if squares.ndim == 2 else squares) / (count - 1.0)
        usable = np.isfinite(found) & (found > 0.0)
        # a weighted geometric mean, because the earlier estimate may be of any size
        weight = count / (count + PRIOR_DRAWS)
        variances = np.where(
            usable,
            np.exp(weight * np.log(np.where(usable, found, 1.0)) + (1.0 - weight) * np.log(before)),
            before,
        )
        return DiagonalMass(jax.device_put(np.sqrt(variances).astype(np.float32)))
    assert isinstance(earlier, DenseMass)
    covariance = np.asarray(moments.squares, np.float64) / (count - 1.0)
    scales = np.sqrt(np.diagonal(covariance))
    if not np.all(np.isfinite(covariance)) or np.any(scales <= 0.0):
        return earlier
    # correlations stay near those of the earlier mass as long as there are few draws for each
    # parameter
    factor = np.asarray(earlier.inverse_factor, np.float64)
    keep = count / (count + PRIOR_DRAWS * len(scales))
    correlation = keep * covariance / np.outer(scales, scales) + (1.0 - keep) * _correlation(
        factor.T @ factor
    )
    try:
        precision = np.linalg.inv(correlation) / np.outer(scales, scales)
        return as_mass(np.asarray(0.5 * (precision + precision.T)))
    except (np.linalg.LinAlgError, ValueError):
        return earlier


def longest_direction(moments: Moments) -> float:
    """The standard deviation of the widest direction once every parameter's own is one: how much
    longer trajectories must be.

    1 where correlations were not collected. The largest eigenvalue of a correlation matrix from n
    draws of d independent numbers is (1 + sqrt(d / n))^2, and draws of a chain count for less: that
    much is chance.
    """
    count = float(moments.num_draws)
    if moments.squares.ndim != 2 or count < 2:
        return 1.0
    covariance = np.asarray(moments.squares, np.float64) / (count - 1.0)
    scales = np.sqrt(np.diagonal(covariance))
    if not np.all(np.isfinite(covariance)) or np.any(scales <= 0.0):
        return 1.0
    largest = float(np.linalg.eigvalsh(_correlation(covariance))[-1])
    chance = (1.0 + np.sqrt(len(scales) * DRAWS_PER_EFFECTIVE / count)) ** 2
    return float(np.sqrt(max(1.0, largest / chance)))


def _correlation(covariance: np.ndarray) -> np.ndarray:
    scales = np.sqrt(np.diagonal(covariance))
    return covariance / np.outer(scales, scales)


def _squares(deviations: jax.Array, num_axes: int) -> Any:
    return deviations.T @ deviations if num_axes == 2 else jnp.sum(deviations**2, axis=0)
