"""What an example's energy differs by from its Taylor polynomial about the reference: the small end of large numbers."""

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold import trees
from amagold.mode.reference import Reference
from amagold.target.bounds import LinearBounds

NEAR = 0.5  # a predictor's change below which the remainder is integrated, because subtraction would leave little of it
ROUNDING = 16.0 * float(np.finfo(np.float32).eps)  # of the terms of a sum, that may be off in it
NODES, WEIGHTS = (np.asarray(found, np.float32) for found in np.polynomial.legendre.leggauss(3))  # to 1e-7 of the remainder, that near


def remainder_differences(
    bounds: LinearBounds, reference: Reference, order: int, position: trees.PyTree, proposed: trees.PyTree, rows: trees.PyTree
) -> jax.Array:
    """D_i = R_i(theta*) - R_i(theta) for each of the rows, where U_i = Taylor polynomial of the order + R_i."""
    return differences_and_rounding(bounds, reference, order, position, proposed, rows)[0]


def differences_and_rounding(
    bounds: LinearBounds, reference: Reference, order: int, position: trees.PyTree, proposed: trees.PyTree, rows: trees.PyTree
) -> tuple[jax.Array, jax.Array]:
    """The same, and what rounding may have added to each."""
    # the predictor is linear, so its change is the predictor of the change, without cancellation; all three in one product
    away = jax.tree.map(
        lambda here, there, center: jnp.stack([center, here - center, there - center]), position, proposed, reference.position
    )
    predictors = jax.vmap(lambda row: jax.vmap(bounds.predictor, in_axes=(0, None))(away, row))(rows)

    def one(center: jax.Array, steps: jax.Array, row: trees.PyTree) -> tuple[jax.Array, jax.Array]:
        return jax.vmap(lambda step: remainder_and_rounding(lambda at: -bounds.outcome(at, row), order, center, step))(steps)

    remainders, rounding = jax.vmap(one)(predictors[:, 0], predictors[:, 1:], rows)
    return remainders[:, 1] - remainders[:, 0], rounding.sum(axis=1)


def remainder(energy: Callable[[jax.Array], jax.Array], order: int, center: jax.Array, step: jax.Array) -> jax.Array:
    return remainder_and_rounding(energy, order, center, step)[0]


def remainder_and_rounding(
    energy: Callable[[jax.Array], jax.Array], order: int, center: jax.Array, step: jax.Array
) -> tuple[jax.Array, jax.Array]:
    """R(z) = f(z) - f(z_ref) - f'(z_ref) d - ... up to the order, d = z - z_ref, and what rounding may have added to it."""

    def along(place: Any) -> jax.Array:
        return energy(center + place * step)

    start = jnp.zeros((), center.dtype)
    direct = along(jnp.ones((), center.dtype))
    size = jnp.abs(direct)
    for number in range(order + 1):
        term = derivative(along, number)(start) / math.factorial(number)
        direct, size = direct - term, size + jnp.abs(term)
    # R(z) = integral over (0, 1) of (1 - t)^order / order! times the next derivative along the way
    places = 0.5 * (1.0 + NODES)
    factors = 0.5 * WEIGHTS * (1.0 - places) ** order / math.factorial(order)
    integral = jnp.dot(factors, jax.vmap(derivative(along, order + 1))(jnp.asarray(places)))
    is_near = jnp.max(jnp.abs(step)) < NEAR
    return jnp.where(is_near, integral, direct), ROUNDING * jnp.where(is_near, jnp.abs(integral), size)


def derivative(function: Callable[[Any], jax.Array], number: int) -> Callable[[Any], jax.Array]:
    """The derivative of this number of a function of one number."""
    for _ in range(number):
        function = _slope(function)
    return function


def _slope(function: Callable[[Any], jax.Array]) -> Callable[[Any], jax.Array]:
    return lambda at: jax.jvp(function, (at,), (jnp.ones_like(at),))[1]
