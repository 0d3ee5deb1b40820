"""How far one example's log likelihood can stray from its Taylor polynomial: what exact tests on a
few examples rest on.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.target._found_bounds import FoundSize


class SplitRow(NamedTuple):
    """One example's z = numbers . theta_0 + sum_f values_f theta_f[levels_f]: theta_0 begins the
    position, then factors follow, each without its level 0, whose coefficient is zero.
    """

    numbers: jax.Array
    levels: jax.Array  # one for each factor, from 0
    values: jax.Array  # what the level's coefficient is times


class SparsePredictor(ABC):
    """A predictor z = x . theta, whose x is zero but for a few places: numbers, and for every
    factor the one level of a row. With shared numbers s, which end the flat position and are the
    same for all rows, it is the vector (x . theta, s) = A (theta, s): A has the rows (x, 0) and
    (0, 1).
    """

    num_shared: int = 0  # how many numbers s has; none where z is one number

    @abstractmethod
    def split(self, example: trees.PyTree) -> SplitRow:
        """The example's numbers and levels."""

    @abstractmethod
    def num_levels(self, example: trees.PyTree) -> tuple[int, ...]:
        """Of every factor, level 0 among them."""

    @abstractmethod
    def is_plain(self, example: trees.PyTree) -> tuple[bool, ...]:
        """Of every factor, whether its value is the same in all rows."""

    @abstractmethod
    def gram(self, rows: trees.PyTree, weights: jax.Array) -> jax.Array:
        """sum_i w_i x_i x_i^T over rows with a leading axis; with shared numbers
        sum_i A_i^T W_i A_i, W_i symmetric.
        """

    @abstractmethod
    def times(self, example: trees.PyTree, matrix: jax.Array) -> jax.Array:
        """x M of one example, or A M."""

    def squared(self, example: trees.PyTree, matrix: jax.Array) -> jax.Array:
        """x . M x of one example, or A M A^T, M symmetric: pairs of places alone are looked up."""
        numbers, levels, values = self.split(example)
        places, start = [], len(numbers)
        for factor, size in enumerate(self.num_levels(example)):
            places.append(start + jnp.maximum(levels[factor] - 1, 0))
            start += size - 1
        total = jnp.dot(numbers, matrix[: len(numbers), : len(numbers)] @ numbers)
        present = jnp.where(levels > 0, values, 0.0)
        for one, place in enumerate(places):
            across = jnp.dot(numbers, matrix[place, : len(numbers)])
            total += present[one] * (2.0 * across + present[one] * matrix[place, place])
            for other in range(one):
                total += 2.0 * present[one] * present[other] * matrix[place, places[other]]
        if not self.num_shared:
            return total
        of_shared = matrix[-self.num_shared :]
        across = of_shared[:, : len(numbers)] @ numbers
        across += sum(there * of_shared[:, at] for there, at in zip(present, places, strict=True))
        upper = jnp.concatenate([total[None], across])[None]
        lower = jnp.concatenate([across[:, None], of_shared[:, -self.num_shared :]], axis=1)
        return jnp.concatenate([upper, lower])

    @abstractmethod
    def __call__(self, position: trees.PyTree, example: trees.PyTree) -> jax.Array:
        """z of one example."""


class LinearBounds(NamedTuple):
    """For likelihoods that see the position through a linear predictor: log likelihood_i =
    outcome(z_i, example), z linear.

    The outcome's derivatives satisfy |f_i^(k)(z)| <= derivatives[k - 1] scale_i exp(growth |z -
    z_ref|) for k = 1, 2, 3; those of a vector z in the Euclidean norm. Distances are in the norm
    |v|_H^2 = v . H v with the Hessian H at the reference, and a_i is the largest change of z_i over
    a step of length one. The remainders of order 0, 1 and 2 about the reference then satisfy
    |R_i(theta*) - R_i(theta)| <= c_i M, where c_i = scale_i a_i^(order + 1) and M is symmetric in
    theta and theta*.

    Instead of a scale and a growth, `within` gives c_i itself, for positions within a radius of the
    reference; a test of a position beyond it looks at all data.

    `lower_curvature` and `upper_curvature` sharpen the parabolas between which the outcome stays,
    for Firefly; without them derivatives[1] gives both: -lower_curvature_i |z - z_ref|^2 / 2 <=
    f_i(z) - f_i(z_ref) - f_i'(z_ref) . (z - z_ref) <= upper_curvature scale_i |z - z_ref|^2 / 2.
    """

    # (position, example) -> z, a number or a vector
    predictor: Callable[[trees.PyTree, trees.PyTree], jax.Array]
    outcome: Callable[[jax.Array, trees.PyTree], jax.Array]  # (z, example) -> log likelihood
    # math.inf where there is no bound: remainders of that order are then refused
    derivatives: tuple[float, float, float]
    # (z at the reference, example) -> scale_i; None is one
    scale: Callable[[jax.Array, trees.PyTree], jax.Array] | None = None
    growth: float = 0.0
    # (z at the reference, example) -> a number
    lower_curvature: Callable[[jax.Array, trees.PyTree], jax.Array] | None = None
    upper_curvature: float | None = None  # zero for an outcome that is concave in z
    # (z at the reference, example, A_i in units of the norm, radius, order) -> c_i
    within: FoundSize | None = None
    # whether the outcome stays where one number is added to all of a vector z
    ignores_shifts: bool = False

    def radius(self, num_parameters: int) -> float:
        """How far from the reference the bounds hold, in the norm of H."""
        return math.inf if self.within is None else self.within.radius(num_parameters)

    def magnitude(
        self,
        order: int,
        distance: jax.Array,
        reach: jax.Array,
        other: jax.Array,
        largest: Any,
        *,
        is_scalar: bool = False,
        radius: float = math.inf,
    ) -> jax.Array:
        """M(theta, theta*), from |theta - theta*|, |theta - ref| and |theta* - ref| in the norm of
        H, and the largest a_i.

        The slope of a remainder of order 1 or 2 is at most K_2 |z| or K_3 z^2 / 2, z = z_i - z_ref,
        and is integrated from one end to the other. A number z that is nowhere farther out than
        `reach` and `other` and moves no farther than `distance` does worst from the farther end
        inwards. A vector goes along a straight line, or by way of the reference. Where either
        position is beyond the radius there is no bound.
        """
        if math.isinf(self.derivatives[order]):
            raise ValueError(
                f"order must be another than {order} here: the outcome's derivative {order + 1} "
                "has no bound; order=2 is usual"
            )
        farther = jnp.maximum(reach, other)
        inner = farther - distance  # beyond the reference if negative
        if order == 0:
            size = self.derivatives[0] * distance
        elif order == 1 and is_scalar:
            # K_2 (A^2 - B |B|) / 2, A = farther, B = inner
            size = (
                0.5
                * self.derivatives[1]
                * jnp.where(inner > 0, distance * (farther + inner), farther**2 + inner**2)
            )
        elif order == 1:
            size = (
                0.5
                * self.derivatives[1]
                * jnp.minimum(distance * (reach + other), reach**2 + other**2)
            )
        elif is_scalar:
            # K_3 (A^3 - B^3) / 6, as a product because the difference may be small
            size = self.derivatives[2] / 6.0 * distance * (farther**2 + farther * inner + inner**2)
        else:
            straight = 0.25 * distance * (reach**2 + other**2)
            size = self.derivatives[2] * jnp.minimum(straight, (reach**3 + other**3) / 6.0)
        if not math.isinf(radius):
            size = jnp.where(farther <= radius, size, jnp.inf)
        return size * jnp.exp(self.growth * largest * farther) if self.growth else size

    def is_scalar(self, position: trees.PyTree, example: trees.PyTree) -> bool:
        """Whether the predictor is one number."""
        return jax.eval_shape(self.predictor, position, example).shape == ()
