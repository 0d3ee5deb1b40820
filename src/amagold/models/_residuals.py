"""Outcomes that are a predictor plus noise, whose scale is known or a parameter of its own."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.models._design import NoisyDesign
from amagold.models._priors import CoefficientPrior, NoisePrior
from amagold.models._regression import Predictor, num_predictors, regression
from amagold.models._scale import UserScale
from amagold.models._stored_table import examples_of
from amagold.target import LinearBounds, Posterior


class ResidualExample(NamedTuple):
    """One row of the table: its predictors and its outcome."""

    predictors: jax.Array
    response: jax.Array


class Shape(Protocol):
    """A log density of residuals in units of the noise scale, and bounds on its derivatives."""

    @property
    def derivatives(self) -> tuple[float, float, float]: ...

    @property
    def bend(self) -> float:
        """The largest second derivative: zero where the log density is concave."""
        ...

    def __call__(self, residual: jax.Array) -> jax.Array: ...

    def weight(self, residual: jax.Array) -> jax.Array:
        """-shape'(u) / u: how much a residual counts."""
        ...


@dataclass(frozen=True)
class Noise:
    """log p(y | z) = shape((y - z) / s), with the noise scale s known."""

    shape: Shape
    noise_scale: float

    def __call__(self, z: jax.Array, example: ResidualExample) -> jax.Array:
        return self.shape((example.response - z) / self.noise_scale)

    def bounds(self, predictor: Predictor) -> LinearBounds:
        """Each derivative with respect to z brings one more 1 / s."""
        first, second, third = self.shape.derivatives
        scale = self.noise_scale
        derivatives = first / scale, second / scale**2, third / scale**3
        return LinearBounds(
            predictor,
            self,
            derivatives,
            lower_curvature=LowerCurvature(self),
            upper_curvature=self.shape.bend / scale**2,
        )


@dataclass(frozen=True)
class LowerCurvature:
    """Of the parabola below log p(y | z) that touches it at z, for shapes that are convex in u^2:
    -shape'(u) / (u s^2).
    """

    noise: Noise

    def __call__(self, z: jax.Array, example: ResidualExample) -> jax.Array:
        scale = self.noise.noise_scale
        return self.noise.shape.weight((example.response - z) / scale) / scale**2


@trees.record(static=("predictor", "shape"))
class UnknownNoise:
    """log p(y | x, theta, s) = shape((y - z) / s) - log s."""

    predictor: Predictor
    shape: Shape

    def __call__(self, position: dict[str, jax.Array], example: ResidualExample) -> jax.Array:
        log_scale = position["log_noise_scale"]
        z = self.predictor(position["coefficients"], example)
        return self.shape((example.response - z) * jnp.exp(-log_scale)) - log_scale


def noisy_regression(
    shape: Shape,
    data: Any,
    prior: CoefficientPrior | NoisePrior,
    transform: UserScale | None,
    noise_scale: float | None,
) -> Posterior:
    """The posterior of the coefficients; without a noise scale that of a dict of them and
    `log_noise_scale`, which has no bounds.
    """
    if isinstance(prior, CoefficientPrior):
        assert noise_scale is not None
        return regression(Noise(shape, noise_scale), data, prior, transform)
    init = {
        "coefficients": np.zeros(num_predictors(data), np.float32),
        "log_noise_scale": np.float32(0.0),
    }
    return Posterior(UnknownNoise(Predictor(), shape), prior, data, init=init, transform=transform)


def from_design(shape: Shape, design: NoisyDesign) -> Posterior:
    """The same from a table that is ready."""
    data = examples_of(ResidualExample, design.predictors, design.response)
    return noisy_regression(shape, data, design.prior, design.transform, design.noise_scale)


@dataclass(frozen=True)
class Gaussian:
    """-u^2 / 2, up to a constant. Its slope is unbounded, its third derivative zero."""

    derivatives = (math.inf, 1.0, 0.0)
    bend = 0.0

    def __call__(self, residual: jax.Array) -> jax.Array:
        return -0.5 * residual**2

    def weight(self, residual: jax.Array) -> jax.Array:
        return jnp.ones_like(residual)


@dataclass(frozen=True)
class StudentT:
    """-(nu + 1) / 2 log(1 + u^2 / nu), up to a constant."""

    degrees_of_freedom: float

    def __call__(self, residual: jax.Array) -> jax.Array:
        nu = self.degrees_of_freedom
        return -0.5 * (nu + 1.0) * jnp.log1p(residual**2 / nu)

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
