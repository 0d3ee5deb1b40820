"""log Phi with three derivatives that keep their precision in the far tail, where automatic ones
lose all of it.

| symbol | meaning | far below zero, x = -t |
|---|---|---|
| m = phi(t) / Phi(t) | the slope of log Phi | x + delta |
| delta = t + m | the second derivative is -m delta | 1 / (x + epsilon) |
| epsilon, zeta | continued fraction | 2 / (x + zeta), 3 / (x + 4 / (x + ...)) |

The third derivative m (delta (delta + m) - 1) cancels to nothing there, and is m delta^2 epsilon
(zeta - epsilon) instead: no differences of nearly equal numbers.
"""

import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.special import erfc, log_ndtr

LOG_ROOT_TWO_PI = 0.5 * math.log(2.0 * math.pi)
TAIL = -3.0  # below, the continued fraction
DEPTH = 16  # of the fraction: at x = 3 the slope is right to 1e-8 and the third derivative to 1e-5


class Fraction(NamedTuple):
    """Levels of the continued fraction m = x + 1 / (x + 2 / (x + 3 / ...))."""

    slope: jax.Array
    delta: jax.Array
    epsilon: jax.Array
    zeta: jax.Array


@jax.custom_jvp
def log_normal_cdf(t: jax.Array) -> jax.Array:
    """log Phi(t)."""
    x = -jnp.minimum(t, TAIL)
    # phi(t) / m
    tail = -0.5 * x * x - LOG_ROOT_TWO_PI - jnp.log(_fraction(x).slope)
    near = jnp.maximum(t, TAIL)
    outside = _outside(near)
    return jnp.where(t < TAIL, tail, jnp.where(near > 0, jnp.log1p(-outside), jnp.log(outside)))


@jax.custom_jvp
def slope_of(t: jax.Array) -> jax.Array:
    """m."""
    near = jnp.maximum(t, TAIL)
    outside = _outside(near)
    ratio = jnp.exp(-0.5 * near * near - LOG_ROOT_TWO_PI) / jnp.where(
        near > 0, 1.0 - outside, outside
    )
    return jnp.where(t < TAIL, _fraction(-jnp.minimum(t, TAIL)).slope, ratio)


@jax.custom_jvp
def curvature(t: jax.Array) -> jax.Array:
    """-m delta."""
    fraction, slope = _fraction(-jnp.minimum(t, TAIL)), slope_of(jnp.maximum(t, TAIL))
    return -jnp.where(
        t < TAIL, fraction.slope * fraction.delta, slope * (jnp.maximum(t, TAIL) + slope)
    )


def third(t: jax.Array) -> jax.Array:
    """m (delta (delta + m) - 1)."""
    near = jnp.maximum(t, TAIL)
    slope, fraction = slope_of(near), _fraction(-jnp.minimum(t, TAIL))
    delta = near + slope
    tail = (
        fraction.slope * fraction.delta**2 * fraction.epsilon * (fraction.zeta - fraction.epsilon)
    )
    return jnp.where(t < TAIL, tail, slope * (delta * (delta + slope) - 1.0))


def log_between(low: jax.Array, width: jax.Array) -> jax.Array:
    """log(Phi(low + width) - Phi(low)), of a width above zero."""
    low, width = jnp.broadcast_arrays(low, width)
    high = low + width
    # mirrored where most of it is above zero, so that numbers near one are not subtracted
    is_above = low + high > 0.0
    left = jax.lax.select(is_above, -high, low)
    right = jax.lax.select(is_above, -low, high)
    largest = log_ndtr(right)
    return largest + jnp.log(-jnp.expm1(log_ndtr(left) - largest))


def _outside(t: jax.Array) -> jax.Array:
    """Phi(-|t|)."""
    return 0.5 * erfc(jnp.abs(t) * math.sqrt(0.5))


def _fraction(x: jax.Array) -> Fraction:
    zeta = jnp.zeros_like(x)
    for level in range(DEPTH, 2, -1):
        zeta = level / (x + zeta)
    epsilon = 2.0 / (x + zeta)
    delta = 1.0 / (x + epsilon)
    return Fraction(x + delta, delta, epsilon, zeta)


def _differentiate(function: Any, derivative: Any) -> None:
    @function.defjvp
    def rule(primals: tuple[jax.Array], tangents: tuple[jax.Array]) -> tuple[jax.Array, jax.Array]:
        return function(*primals), derivative(*primals) * tangents[0]


_differentiate(log_normal_cdf, slope_of)
_differentiate(slope_of, curvature)
_differentiate(curvature, third)
