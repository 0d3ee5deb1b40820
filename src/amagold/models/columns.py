"""Standardised predictors, and coefficients that stay on the user's scale."""

from dataclasses import dataclass

import jax
import jax.numpy as jnp
import numpy as np

from amagold.models.priors import Normal


@dataclass(frozen=True)
class Columns:
    """The stored predictors are x~ = (x - center) / scale; with an intercept a column of ones comes before them.

    Plain numbers, so that two models of the same table are equal and share a compiled program.
    """

    scales: tuple[float, ...]
    centers: tuple[float, ...] | None  # None without an intercept: the predictors are then only scaled

    def coefficients(self, position: jax.Array) -> jax.Array:
        """gamma with x~ . gamma = x . theta; one column for each of the position's. The examples have no part in it."""
        scales = _column(self.scales, position)
        if self.centers is None:
            return scales * position
        # x . theta = (theta_0 + center . theta_1..d) + sum_j x~_j scale_j theta_j
        at_center = position[0] + jnp.sum(_column(self.centers, position) * position[1:], axis=0)
        return jnp.concatenate([at_center[None], scales * position[1:]])


@dataclass(frozen=True)
class NormalOnColumns:
    """Independent N(0, scale^2) on the coefficients of the standardised predictors and on the intercept at their means."""

    scale: float
    columns: Columns

    def __call__(self, position: jax.Array) -> jax.Array:
        return Normal(self.scale)(self.columns.coefficients(position))


def _column(numbers: tuple[float, ...], position: jax.Array) -> jax.Array:
    """As an array that multiplies the rows of the position."""
    return jnp.asarray(np.asarray(numbers), position.dtype).reshape(-1, *[1] * (position.ndim - 1))
