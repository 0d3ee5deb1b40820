"""How far one example's log likelihood can stray from its Taylor polynomial: what exact tests on a few examples rest on."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from amagold import trees


class LinearBounds(NamedTuple):
    """For likelihoods that see the position through a linear predictor: log likelihood_i = outcome(z_i, example), z linear.

    The outcome's derivatives satisfy |f_i^(k)(z)| <= derivatives[k - 1] scale_i exp(growth |z - z_ref|) for k = 1, 2, 3; those of a
    vector z in the Euclidean norm. Distances are in the norm |v|_H^2 = v . H v with the Hessian H at the reference, and a_i is the
    largest change of z_i over a step of length one. The remainders of order 0, 1 and 2 about the reference then satisfy
    |R_i(theta*) - R_i(theta)| <= c_i M, where c_i = scale_i a_i^(order + 1) and M is symmetric in theta and theta*.

    The last two fields sharpen the parabolas between which the outcome stays, for Firefly; without them derivatives[1] gives both:
    -lower_curvature_i |z - z_ref|^2 / 2 <= f_i(z) - f_i(z_ref) - f_i'(z_ref) . (z - z_ref) <= upper_curvature scale_i |z - z_ref|^2 / 2.
    """

    predictor: Callable[[trees.PyTree, trees.PyTree], jax.Array]  # (position, example) -> z, a number or a vector
    outcome: Callable[[jax.Array, trees.PyTree], jax.Array]  # (z, example) -> log likelihood
    derivatives: tuple[float, float, float]  # math.inf where there is no bound: remainders of that order are then refused
    scale: Callable[[jax.Array, trees.PyTree], jax.Array] | None = None  # (z at the reference, example) -> scale_i; None is one
    growth: float = 0.0
    lower_curvature: Callable[[jax.Array, trees.PyTree], jax.Array] | None = None  # (z at the reference, example) -> a number
    upper_curvature: float | None = None  # zero for an outcome that is concave in z

    def magnitude(self, order: int, distance: jax.Array, reach: jax.Array, other: jax.Array, largest: Any) -> jax.Array:
        """M(theta, theta*), from |theta - theta*|, |theta - ref| and |theta* - ref| in the norm of H, and the largest a_i."""
        if math.isinf(self.derivatives[order]):
            raise ValueError(
                f"order must be another than {order} here: the outcome's derivative {order + 1} has no bound; order=2 is usual"
            )
        if order == 0:
            size = self.derivatives[0] * distance
        elif order == 1:
            size = 0.5 * self.derivatives[1] * distance * (reach + other)
        else:
            size = 0.25 * self.derivatives[2] * distance * (reach**2 + other**2)
        return size * jnp.exp(self.growth * largest * jnp.maximum(reach, other)) if self.growth else size
