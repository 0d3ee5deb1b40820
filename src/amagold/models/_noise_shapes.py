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
    def scaled_derivatives(self) -> tuple[float, float, float] | None:
        """Of shape((y - z) / s) - log s with respect to (z, log s) along any unit vector, in units
        of `third_derivative`; None where they have no bound.
        """
        ...

    def third_derivative(self, per_scale: jax.Array) -> jax.Array:
        """How large the third one can be at 1 / s; it grows by at most the cube of 1 / s."""
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
    scaled_derivatives = None  # residuals have no bound, and sums need none
    log_constant = -0.5 * math.log(2.0 * math.pi)

    def __call__(self, residual: jax.Array) -> jax.Array:
        return -0.5 * residual**2

    def draw(self, key: jax.Array, shape: tuple[int, ...]) -> jax.Array:
        return jax.random.normal(key, shape)

    def third_derivative(self, per_scale: jax.Array) -> jax.Array:
        return jnp.full_like(per_scale, math.inf)

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

    @property
    def scaled_derivatives(self) -> tuple[float, float, float]:
        """With x = u / sqrt nu, e = 1 / (s sqrt nu), k = (nu + 1) / 2 and p(x) = log(1 + x^2), the
        log density is -k p(x) - log s; p1, p2, p3 are the derivatives of p. Along a unit vector
        (a, b) of (z, log s), the derivatives of x are -(a e + b x), 2 a b e + b^2 x and
        -3 a b^2 e - b^3 x. Sorted by powers of a and b:

        first: k p1 e a + (k x p1 - 1) b, with |p1| <= 1 and 0 <= x p1 < 2;
        second: -k (p2 e^2 a^2 + 8 x / (1 + x^2)^2 e a b + 4 x^2 / (1 + x^2)^2 b^2), with
          |p2| <= 2, the next at most 3 sqrt 3 / 2 and the last 1;
        third: k (p3 e^3 a^3 + 12 (1 - 3 x^2) / (1 + x^2)^3 e^2 a^2 b + 24 x (1 - x^2) /
          (1 + x^2)^3 e a b^2 + 8 x^2 (1 - x^2) / (1 + x^2)^3 b^3), with |p3| <=
          (3 + 2 sqrt 2) / 2, the others at most 12, 5.22 and 4 / (3 sqrt 3).

        On the unit circle |a|^3 + |b|^3 <= 1, a^2 |b| and |a| b^2 <= 2 / (3 sqrt 3), |a b| <= 1/2.
        So the third is at most k max(2.915 e^3, 0.77) + k 0.385 (12 e^2 + 5.22 e), and the second
        k max(2 e^2, 1) + 1.3 k e, which is never more than 1.3 times as large.
        """
        nu = self.degrees_of_freedom
        # k e is at most half of the third, and 1 at most 1 / (0.7698 k) of it
        first = 0.5 + max(1.0, nu) / (0.7698 * 0.5 * (nu + 1.0))
        return first, 1.3, 1.0

    def third_derivative(self, per_scale: jax.Array) -> jax.Array:
        nu = self.degrees_of_freedom
        e = per_scale / nu**0.5
        ends = jnp.maximum(2.915 * e**3, 0.76981)
        return 0.5 * (nu + 1.0) * (ends + 0.38491 * (12.0 * e**2 + 5.22 * e))
