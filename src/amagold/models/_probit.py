"""Bayesian probit regression."""

import math
from dataclasses import dataclass

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from amagold.data import Data
from amagold.models._binomial import of_two_classes
from amagold.models._default_priors import normal_quantile
from amagold.models._logistic import LogisticExample
from amagold.models._regression import Predictor, family
from amagold.models._row_terms import RowTerms
from amagold.models._table import table_of
from amagold.target import LinearBounds, Posterior
from amagold.target._normal_tail import log_normal_cdf


@family("probit", LogisticExample)
@dataclass(frozen=True)
class Probit:
    """log p(y | z) = log Phi(y z), with y = -1 or 1."""

    def __call__(self, z: jax.Array, example: LogisticExample) -> jax.Array:
        return log_normal_cdf(example.sign * z)

    def mean(self, z: jax.Array) -> jax.Array:
        return jax.scipy.special.ndtr(z)

    def draw(self, key: jax.Array, z: jax.Array) -> jax.Array:
        return jax.random.bernoulli(key, self.mean(z)).astype(jnp.float32)

    def log_density(self, y: jax.Array, z: jax.Array) -> jax.Array:
        return log_normal_cdf(jnp.where(y > 0, z, -z))

    def bounds(self, predictor: Predictor) -> LinearBounds:
        """The slope grows like |z| in the wrong tail; the second derivative nears -1 there, the
        third is at most 0.295719, near y z = 1.
        """
        return LinearBounds(predictor, self, (math.inf, 1.0, 0.29572), upper_curvature=0.0)


def probit(
    X: ArrayLike | Data,
    y: ArrayLike | None = None,
    prior_scale: float | None = None,
    intercept: bool = True,
    *,
    weights: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    trials: ArrayLike | None = None,
    standardize: bool | None = None,
    outcome: str | None = None,
) -> Posterior:
    """The posterior of a probit regression, P(y = 1) = Phi(x . theta), with independent normal
    priors.

    Args: as for `models.logistic`, whose coefficients are about 1.6 times as large; the default
      prior of the intercept is about the probit of the mean of y.
    """
    given = RowTerms(weights, offset, trials)
    sheet, observed = table_of(X, y, outcome, intercept, given)
    return of_two_classes(sheet, observed, "probit", normal_quantile, prior_scale, standardize)
