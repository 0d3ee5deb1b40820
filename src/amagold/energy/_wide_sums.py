"""Sums that stay right for ten million float32 terms, without asking the user for global
float64.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from amagold.core.array_types import Float, Float32
from amagold.core.shapes import Scalar


class Wide(NamedTuple):
    """A float64 number carried as two float32 numbers, so that it passes through code where float64
    is switched off.
    """

    high: Float32[Array, "*shape"]
    low: Float32[Array, "*shape"]

    def plus(self, other: "Wide") -> "Wide":
        with jax.enable_x64(True):
            return add_each(self, other.high.astype(jnp.float64) + other.low.astype(jnp.float64))


# terms, whose float32 sum is right to 1e-5 when they are differences of log likelihoods
FEW = 4_096


def precise_sum(values: Float[Array, "..."]) -> Scalar:
    """The sum of all values, accumulated in float64 unless they are few, and returned in the
    values' own type.
    """
    if values.size <= FEW:
        return jnp.sum(values)
    with jax.enable_x64(True):
        return jnp.sum(values.astype(jnp.float64)).astype(values.dtype)


def add_to(total: Wide, values: Float[Array, "..."]) -> Wide:
    """total + sum(values), accumulated in float64."""
    with jax.enable_x64(True):
        return add_each(total, jnp.sum(values.astype(jnp.float64)))


def add_each(total: Wide, values: Float[Array, "*shape"]) -> Wide:
    """total + values, element by element in float64."""
    with jax.enable_x64(True):
        exact = (
            total.high.astype(jnp.float64)
            + total.low.astype(jnp.float64)
            + values.astype(jnp.float64)
        )
        high = exact.astype(jnp.float32)
        return Wide(high, (exact - high.astype(jnp.float64)).astype(jnp.float32))


def zeros_like(values: Float[Array, "*shape"]) -> Wide:
    nothing = jnp.zeros(values.shape, jnp.float32)
    return Wide(nothing, nothing)


def zero() -> Wide:
    return Wide(jnp.float32(0.0), jnp.float32(0.0))


def subtract(left: Wide, right: Wide) -> Float32[Array, "*shape"]:
    """left - right in float64, returned as float32."""
    with jax.enable_x64(True):
        high = left.high.astype(jnp.float64) - right.high.astype(jnp.float64)
        return (high + (left.low.astype(jnp.float64) - right.low.astype(jnp.float64))).astype(
            jnp.float32
        )
