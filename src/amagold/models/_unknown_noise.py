"""Noise whose scale is a parameter: an outcome of two numbers, z and log s."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from amagold.models._noise_shapes import Shape
from amagold.target import LinearBounds


@dataclass(frozen=True)
class UnknownNoise:
    """log p(y | z, log s) = shape((y - z) / s) - log s."""

    shape: Shape

    def __call__(self, z: jax.Array, example: Any) -> jax.Array:
        return self.shape((example.response - z[0]) * jnp.exp(-z[1])) - z[1]

    def bounds(self, predictor: Any) -> LinearBounds | None:
        """Where the shape knows the derivatives with respect to (z, log s): they grow as powers of
        1 / s, by at most exp(3 |log s - log s_ref|).
        """
        sizes = self.shape.scaled_derivatives
        if sizes is None:
            return None
        return LinearBounds(predictor, self, sizes, scale=ScaledSize(self.shape), growth=3.0)

    def mean(self, z: jax.Array) -> jax.Array:
        return z[..., 0]

    def draw(self, key: jax.Array, z: jax.Array) -> jax.Array:
        return z[..., 0] + jnp.exp(z[..., 1]) * self.shape.draw(key, z.shape[:-1])

    def log_density(self, y: jax.Array, z: jax.Array) -> jax.Array:
        residual = (y - z[..., 0]) * jnp.exp(-z[..., 1])
        return self.shape(residual) - z[..., 1] + self.shape.log_constant


@dataclass(frozen=True)
class ScaledSize:
    """How large the third derivative can be at the reference."""

    shape: Shape

    def __call__(self, z: jax.Array, example: Any) -> jax.Array:
        return self.shape.third_derivative(jnp.exp(-z[1]))
