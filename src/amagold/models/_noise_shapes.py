"""The shapes of noise: log densities of residuals in units of its scale."""

import math
from dataclasses import dataclass
from typing import Protocol

import jax
import jax.numpy as jnp


class Shape(Protocol):
    """A log density of residuals in units of the noise scale, and bounds on its derivatives."""

    @property
    def derivatives(self) -> tuple[float, float, float]: ...

    @property
    def bend(self) -> float:
        """The largest second derivative: zero where the log density is concave."""
        ...

    @property
    def log_constant(self) -> float:
        """What the log density leaves out."""
        ...

    def __call__(self, residual: jax.Array) -> jax.Array: ...

    def draw(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        """Residuals of this density."""
        ...

    def weight(self, residual: jax.Array) -> jax.Array:
        """-shape'(u) / u: how much a residual counts."""
        ...


@dataclass(frozen=True)
class Gaussian:
    """-u^2 / 2, up to a constant. Its slope is unbounded, its third derivative zero."""

    derivatives = (math.inf, 1.0, 0.0)
    bend = 0.0
    log_constant = -0.5 * math.log(2.0 * math.pi)

    def __call__(self, residual: jax.Array) -> jax.Array:
        return -0.5 * residual**2

    def draw(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jax.random.normal(key, shape)

    def weight(self, residual: jax.Array) -> jax.Array:
        return jnp.ones_like(residual)


@dataclass(frozen=True)
class StudentT:
    """-(nu + 1) / 2 log(1 + u^2 / nu), up to a constant."""

    degrees_of_freedom: float

    def __call__(self, residual: jax.Array) -> jax.Array:
        nu = self.degrees_of_freedom
        return -0.5 * (nu + 1.0) * jnp.log1p(residual**2 / nu)

    def draw(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jax.random.t(key, self.degrees_of_freedom, shape)

    @property
    def log_constant(self) -> float:
        nu = self.degrees_of_freedom
        return math.lgamma(0.5 * (nu + 1.0)) - math.lgamma(0.5 * nu) - 0.5 * math.log(nu * math.pi)

    def weight(self, residual: jax.Array) -> jax.Array:
        nu = self.degrees_of_freedom
        return (nu + 1.0) / (nu + residual**2)

    @property
    def bend(self) -> float:
        """At u = sqrt(3 nu)."""
        return (self.degrees_of_freedom + 1.0) / (8.0 * self.degrees_of_freedom)

    @property
    def derivatives(self) -> tuple[float, float, float]:
        """Largest at u = sqrt nu, at 0, and at u = sqrt nu tan(pi / 8)."""
        nu = self.degrees_of_freedom
        return (
            (nu + 1.0) / (2.0 * nu**0.5),
            (nu + 1.0) / nu,
            (nu + 1.0) * (3.0 + 2.0 * 2.0**0.5) / (4.0 * nu**1.5),
        )
