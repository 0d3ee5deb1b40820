"""What an example's energy differs by from its Taylor polynomial about the reference: the small end
of large numbers.

A remainder is computed twice: by subtracting the polynomial, which rounding spoils where the
remainder is small, and as an integral by three nodes, which is wrong where the energy bends more
than once on the way. No constant says where one is better: that depends on the likelihood's own
scale, which may differ from example to example. Instead the integral is taken where the subtraction
confirms it to within its own rounding, so that nothing is ever worse than the subtraction.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.core.array_types import Float, Float64
from amagold.core.shapes import Example, PerRow, Position, Predictor, Rows, Scalar
from amagold.mode._reference import Reference
from amagold.target._linear_bounds import LinearBounds

ROUNDING = 16.0 * float(np.finfo(np.float32).eps)  # of the terms of a sum, that may be off in it
HIDDEN = 1e3  # times the rounding that is counted: the most that there may be

Changes = Float[Array, "2 *predictor"]  # to either position
PerPlace = Float64[np.ndarray, " places"]
Curve = Callable[[Scalar], Scalar]


class Remainder(NamedTuple):
    """A remainder, and what rounding may have added to it."""

    value: Float[Array, "*shape"]
    rounding: Float[Array, "*shape"]


def remainder_differences(
    bounds: LinearBounds,
    reference: Reference,
    order: int,
    position: Position,
    proposed: Position,
    rows: Rows,
) -> PerRow:
    """D_i = R_i(theta*) - R_i(theta) for each of the rows, where U_i = Taylor polynomial of the
    order + R_i.
    """
    return differences_and_rounding(bounds, reference, order, position, proposed, rows).value


def differences_and_rounding(
    bounds: LinearBounds,
    reference: Reference,
    order: int,
    position: Position,
    proposed: Position,
    rows: Rows,
) -> Remainder:
    """The same, and what rounding may have added to each."""

    def one(center: Predictor, steps: Changes, row: Example) -> Remainder:
        return jax.vmap(
            lambda step: remainder(lambda at: -bounds.outcome(at, row), order, center, step)
        )(steps)

    found = jax.vmap(one)(
        *predictors_of(bounds, reference.position, position, proposed, rows), rows
    )
    return Remainder(found.value[:, 1] - found.value[:, 0], found.rounding.sum(axis=1))


def predictors_of(
    bounds: LinearBounds,
    center: Position,
    position: Position,
    proposed: Position,
    rows: Rows,
) -> tuple[Float[Array, " rows *predictor"], Float[Array, "rows 2 *predictor"]]:
    """z_i at the reference, and its two changes to the positions, for each of the rows."""
    moves = jax.tree.map(
        lambda here, there, at: jnp.stack([here - at, there - at]), position, proposed, center
    )

    def one(row: Example) -> tuple[Predictor, Changes]:
        # z is linear but for a constant: its change is its derivative along the change, where
        # nothing cancels
        def change(move: Position) -> tuple[Predictor, Predictor]:
            return jax.jvp(lambda at: bounds.predictor(at, row), (center,), (move,))

        return jax.vmap(change, out_axes=(None, 0))(moves)

    return jax.vmap(one)(rows)


def remainder(
    energy: Callable[[Predictor], Scalar], order: int, center: Predictor, step: Predictor
) -> Remainder:
    """R(z) = f(z) - f(z_ref) - f'(z_ref) d - ... up to the order, d = z - z_ref."""

    def along(place: Scalar) -> Scalar:
        return energy(center + place * step)

    start = jnp.zeros((), center.dtype)
    value, slope = jax.jvp(along, (start + 1.0,), (start + 1.0,))
    direct, size = value, jnp.abs(value)
    for number in range(order + 1):
        term = derivative(along, number)(start) / math.factorial(number)
        direct, size = direct - term, size + jnp.abs(term)
    # R(z) = integral over (0, 1) of (1 - t)^order / order! times the next derivative along the way
    places, weights, fewer = (rule.tolist() for rule in rules(order))
    # written out, so that all of it is one loop over the examples
    ways = [derivative(along, order + 1)(start + place) for place in places]
    integral, coarse = (
        sum(weight * way for weight, way in zip(rule, ways, strict=True))
        for rule in (weights, fewer)
    )

    # of the terms, and of z = z_ref + d itself, whose rounding moves f by its slope
    reach, length = jnp.abs(center).max(), jnp.abs(step).max()
    moved = jnp.abs(slope) * (
        1.0 + jnp.where(length > 0, reach / jnp.where(length > 0, length, 1.0), 0.0)
    )
    rounding = ROUNDING * (size + 0.125 * moved)
    apart, doubt = jnp.abs(integral - direct), jnp.abs(integral - coarse)
    # an outcome may cancel numbers that are not seen from outside, and so round by more than is
    # counted
    is_hidden = apart <= HIDDEN * rounding
    is_small = jnp.abs(integral) <= HIDDEN * rounding
    # confirmed by the subtraction; or too small for it, and confirmed by the other rule
    is_integral = (apart <= rounding) | (is_hidden & is_small & (doubt <= rounding))
    of_direct = jnp.where(is_hidden, jnp.maximum(rounding, apart), rounding)
    of_integral = ROUNDING * jnp.abs(integral) + jnp.minimum(doubt, apart)
    return Remainder(
        jnp.where(is_integral, integral, direct), jnp.where(is_integral, of_integral, of_direct)
    )


def rules(order: int) -> tuple[PerPlace, PerPlace, PerPlace]:
    """Three places in (0, 1), and two rules for the integral of (1 - t)^order / order! f(t): of all
    places, and of two of them.

    The first is Gauss's for this weight, exact for polynomials f of degree 5; the other for
    straight lines.
    """
    # the integrals with f = t^j are j! / (j + order + 1)!
    moments = [math.factorial(power) / math.factorial(power + order + 1) for power in range(6)]
    hankel = np.array([moments[row : row + 3] for row in range(3)])
    # the places are the roots of the cubic t^3 + c_2 t^2 + c_1 t + c_0 that is orthogonal to all
    # parabolas
    cubic = np.linalg.solve(hankel, -np.array(moments[3:]))
    places = np.sort(np.roots([1.0, *cubic[::-1]]).real)
    weights = np.linalg.solve(np.vander(places, increasing=True).T, moments[:3])
    fewer = np.linalg.solve(np.vander(places[:2], increasing=True).T, moments[:2])
    return places, weights, np.append(fewer, 0.0)


def derivative(function: Curve, number: int) -> Curve:
    """The derivative of this number of a function of one number."""
    for _ in range(number):
        function = _slope(function)
    return function


def _slope(function: Curve) -> Curve:
    return lambda at: jax.jvp(function, (at,), (jnp.ones_like(at),))[1]
