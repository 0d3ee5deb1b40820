"""Bayesian probit regression."""

import math
from dataclasses import dataclass

import jax
from jax.typing import ArrayLike

from amagold.models.logistic import Example
from amagold.models.normal_tail import log_normal_cdf
from amagold.models.outcomes import two_classes
from amagold.models.regression import Predictor, regression
from amagold.models.table import table_of
from amagold.target import LinearBounds, Posterior


@dataclass(frozen=True)
class Probit:
    """log p(y | z) = log Phi(y z), with y = -1 or 1."""

    def __call__(self, z: jax.Array, example: Example) -> jax.Array:
        return log_normal_cdf(example.sign * z)

    def bounds(self, predictor: Predictor) -> LinearBounds:
        """The slope grows like |z| in the wrong tail; the second derivative nears -1 there, the third is at most 0.295719, near y z = 1."""
        return LinearBounds(predictor, self, (math.inf, 1.0, 0.29572), upper_curvature=0.0)


def probit(X: ArrayLike, y: ArrayLike, prior_scale: float = 1.0, intercept: bool = True, *, standardize: bool = False) -> Posterior:
    """The posterior of a probit regression, P(y = 1) = Phi(x . theta), with independent N(0, prior_scale^2) priors.

    Args: as for `models.logistic`, whose coefficients are about 1.6 times as large.
    """
    table = table_of(X, intercept, standardize)
    data = Example(table.predictors, two_classes(y, len(table.predictors)))
    return regression(Probit(), data, prior_scale, table.columns)
