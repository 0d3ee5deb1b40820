"""Outcomes that are a predictor plus noise, whose scale is known or a parameter of its own."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax

from amagold.models._design import NoisyDesign
from amagold.models._gaussian_sums import are_fewer, from_sums
from amagold.models._noise_shapes import Gaussian, Shape
from amagold.models._priors import CoefficientPrior, NoisePrior
from amagold.models._regression import Predictor, regression
from amagold.models._scale import UserScale
from amagold.models._stored_table import examples_of
from amagold.models._unknown_noise import UnknownNoise
from amagold.target import LinearBounds, Posterior


class ResidualExample(NamedTuple):
    """One row of the table: its predictors and its outcome."""

    predictors: jax.Array
    response: jax.Array
    weight: jax.Array | None = None
    offset: jax.Array | None = None


@dataclass(frozen=True)
class Noise:
    """log p(y | z) = shape((y - z) / s), with the noise scale s known."""

    shape: Shape
    noise_scale: float

    def __call__(self, z: jax.Array, example: ResidualExample) -> jax.Array:
        return self.shape((example.response - z) / self.noise_scale)

    def mean(self, z: jax.Array) -> jax.Array:
        return z

    def draw(self, key: jax.Array, z: jax.Array) -> jax.Array:
        return z + self.noise_scale * self.shape.draw(key, z.shape)

    def log_density(self, y: jax.Array, z: jax.Array) -> jax.Array:
        constant = self.shape.log_constant - math.log(self.noise_scale)
        return self.shape((y - z) / self.noise_scale) + constant

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


def noisy_regression(
    shape: Shape,
    data: Any,
    prior: CoefficientPrior | NoisePrior,
    transform: UserScale | None,
    noise_scale: float | None,
) -> Posterior:
    """The posterior of the coefficients; without a noise scale that of a dict of them and
    `log_noise_scale`.
    """
    if isinstance(prior, CoefficientPrior):
        assert noise_scale is not None
        return regression(Noise(shape, noise_scale), data, prior, transform)
    return regression(UnknownNoise(shape), data, prior, transform)


def from_design(shape: Shape, design: NoisyDesign) -> Posterior:
    """The same from a table that is ready."""
    if isinstance(shape, Gaussian) and design.noise_scale is None and are_fewer(design):
        return from_sums(design)
    data = examples_of(ResidualExample, design.predictors, design.response, design.rows)
    return noisy_regression(shape, data, design.prior, design.transform, design.noise_scale)
