"""Bayesian logistic regression."""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from amagold.data import Data
from amagold.models._binomial import of_two_classes
from amagold.models._default_priors import log_odds
from amagold.models._log_sigmoid import log_sigmoid
from amagold.models._regression import Predictor, family
from amagold.models._row_terms import RowTerms
from amagold.models._table import table_of
from amagold.target import LinearBounds, Posterior


class LogisticExample(NamedTuple):
    """One row of the table: its predictors and its outcome, -1 or 1."""

    predictors: jax.Array
    sign: jax.Array
    weight: jax.Array | None = None
    offset: jax.Array | None = None


def lower_curvature(z: jax.Array, example: LogisticExample) -> jax.Array:
    """tanh(z / 2) / (2 z), of the parabola below log p that touches it at z (Jaakkola and Jordan);
    1/4 at zero.
    """
    is_far = jnp.abs(z) > 1e-2
    return jnp.where(
        is_far, 0.5 * jnp.tanh(0.5 * z) / jnp.where(is_far, z, 1.0), 0.25 - z**2 / 48.0
    )


@family("logistic", LogisticExample)
@dataclass(frozen=True)
class Logistic:
    """log p(y | z) = -log(1 + exp(-y z)), with y = -1 or 1."""

    # |f'''| <= |f''|, and log |f''| has a slope of at most one
    bends_slowly = True

    def __call__(self, z: jax.Array, example: LogisticExample) -> jax.Array:
        return log_sigmoid(example.sign * z)

    def mean(self, z: jax.Array) -> jax.Array:
        return jax.nn.sigmoid(z)

    def draw(self, key: jax.Array, z: jax.Array) -> jax.Array:
        return jax.random.bernoulli(key, self.mean(z)).astype(jnp.float32)

    def log_density(self, y: jax.Array, z: jax.Array) -> jax.Array:
        return log_sigmoid(jnp.where(y > 0, z, -z))

    def bounds(self, predictor: Predictor) -> LinearBounds:
        """With p = 1 / (1 + exp(-y z)): 1 - p < 1, p (1 - p) <= 1/4, and p (1 - p) |1 - 2p| <= 1 /
        (6 sqrt 3), at p = 1/2 +- 1/sqrt 12.
        """
        return LinearBounds(
            predictor,
            self,
            (1.0, 0.25, 1.0 / (6.0 * 3.0**0.5)),
            lower_curvature=lower_curvature,
            upper_curvature=0.0,
        )


def logistic(
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
    """The posterior of a logistic regression with independent normal priors.

    `amagold.sample` reports the coefficients on the scale of X, the intercept first.

    Args:
      X: predictors, one row per example.
      y: outcomes, 0 or 1 (or -1 and 1, or booleans); with `trials` how many of them succeeded.
      prior_scale: standard deviation of the prior on every coefficient, intercept included. None
        scales the priors by the data: a slope times its predictor's standard deviation is N(0, 1),
        the intercept at the predictors' means N(logit of the mean of y, 2.5^2).
      intercept: whether to put a column of ones first, so that the first coefficient is the
        intercept.
      weights: how often each row counts in the log likelihood, one number above zero for each (zero
        leaves the row out).
      offset: added to x . theta, one number for each row.
      trials: how often each row was tried, for a binomial outcome.
      standardize: whether to sample the coefficients of (x - mean) / sd. None does where columns
        lie far from zero or differ much in width. True also makes a given `prior_scale` speak of sd
        times each coefficient and of the intercept at the means. Draws and starts of
        `amagold.sample` are on the scale of X in any case; a sampler of your own then sees
        standardised positions, which `target.transform` translates.
      outcome: the column of y, for a table on disk (`amagold.data.open`) in place of X; its other
        columns are the predictors.
    """
    given = RowTerms(weights, offset, trials)
    sheet, observed = table_of(X, y, outcome, intercept, given)
    return of_two_classes(sheet, observed, "logistic", log_odds, prior_scale, standardize)
