"""Negative binomial counts whose shape is known."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp

from amagold.models._log_sigmoid import log_sigmoid
from amagold.models._negative_binomial import NegativeBinomial
from amagold.models._poisson import CountExample
from amagold.models._regression import Predictor, family
from amagold.target import LinearBounds


@dataclass(frozen=True)
class CountAndShape:
    """y + a, which the derivatives are at most proportional to."""

    shape: float

    def __call__(self, z: jax.Array, example: CountExample) -> jax.Array:
        return example.events + self.shape


@family("negative_binomial_of_shape", CountExample)
@dataclass(frozen=True)
class NegativeBinomialOfShape:
    """log p(y | z) = y log s(u) + a log s(-u) with u = z - log a, s(u) = 1 / (1 + exp(-u)), up to a
    constant: var y = m + m^2 / a at the mean m = exp(z).
    """

    shape: float

    # |f'''| <= |f''|, and log |f''| has a slope of at most one
    bends_slowly = True

    def __call__(self, z: jax.Array, example: CountExample) -> jax.Array:
        u = z - math.log(self.shape)
        return example.events * log_sigmoid(u) + self.shape * log_sigmoid(-u)

    def mean(self, z: jax.Array) -> jax.Array:
        return jnp.exp(z)

    def draw(self, key: jax.Array, z: jax.Array) -> jax.Array:
        return NegativeBinomial().draw(key, self._with_shape(z))

    def log_density(self, y: jax.Array, z: jax.Array) -> jax.Array:
        return NegativeBinomial().log_density(y, self._with_shape(z))

    def bounds(self, predictor: Predictor) -> LinearBounds:
        """y + a logistic outcomes, at z - log a."""
        derivatives = 1.0, 0.25, 1.0 / (6.0 * math.sqrt(3.0))
        return LinearBounds(
            predictor, self, derivatives, scale=CountAndShape(self.shape), upper_curvature=0.0
        )

    def _with_shape(self, z: jax.Array) -> jax.Array:
        return jnp.stack([z, jnp.full_like(z, math.log(self.shape))], axis=-1)
