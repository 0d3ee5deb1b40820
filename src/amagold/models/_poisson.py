"""Bayesian Poisson regression of counts, with a log link."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from amagold.data import Data
from amagold.models._default_priors import log_rate, of_link
from amagold.models._design import design_of
from amagold.models._outcomes import counts
from amagold.models._regression import Predictor, family, regression
from amagold.models._row_terms import RowTerms, check_offset, with_exposure
from amagold.models._stored_table import examples_of
from amagold.models._table import table_of
from amagold.target import LinearBounds, Posterior


class CountExample(NamedTuple):
    """One row of the table: its predictors and its count."""

    predictors: Any
    events: jax.Array
    weight: jax.Array | None = None
    offset: jax.Array | None = None


def rate(z: jax.Array, example: CountExample) -> jax.Array:
    """exp(z)."""
    return jnp.exp(z)


@jax.custom_jvp
def expm1(d: jax.Array) -> jax.Array:
    """exp(d) - 1, whose derivatives keep the small end of exp(d) too."""
    return jnp.expm1(d)


@expm1.defjvp
def _expm1_slope(
    primals: tuple[jax.Array], tangents: tuple[jax.Array]
) -> tuple[jax.Array, jax.Array]:
    return expm1(*primals), jnp.exp(*primals) * tangents[0]


@family("poisson", CountExample)
@dataclass(frozen=True)
class Poisson:
    """log p(y | z) = y z - exp(z), less its largest value y log y - y: large counts would lose the
    small end in float32.
    """

    # |f'''| <= |f''|, and log |f''| has a slope of at most one
    bends_slowly = True

    def __call__(self, z: jax.Array, example: CountExample) -> jax.Array:
        count = example.events
        # y (d - (exp(d) - 1)) with d = z - log y
        above = z - jnp.log(jnp.maximum(count, 1.0))
        return jnp.where(count > 0, count * (above - expm1(above)), -jnp.exp(z))

    def mean(self, z: jax.Array) -> jax.Array:
        return jnp.exp(z)

    def draw(self, key: jax.Array, z: jax.Array) -> jax.Array:
        return jax.random.poisson(key, jnp.exp(z)).astype(jnp.float32)

    def log_density(self, y: jax.Array, z: jax.Array) -> jax.Array:
        return y * z - jnp.exp(z) - jax.scipy.special.gammaln(y + 1.0)

    def bounds(self, predictor: Predictor) -> LinearBounds:
        """The second and third derivatives are exp(z) <= exp(z_ref) exp(|z - z_ref|); the slope
        exp(z) - y has no such bound.
        """
        return LinearBounds(
            predictor, self, (math.inf, 1.0, 1.0), scale=rate, growth=1.0, upper_curvature=0.0
        )


def poisson(
    X: ArrayLike | Data,
    y: ArrayLike | None = None,
    prior_scale: float | None = None,
    intercept: bool = True,
    *,
    weights: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    standardize: bool | None = None,
    outcome: str | None = None,
) -> Posterior:
    """The posterior of a Poisson regression, E[y] = exp(x . theta), with independent normal priors.

    Args:
      X: predictors, one row per example.
      y: counts, whole numbers from 0.
      prior_scale: standard deviation of the prior on every coefficient. None scales the priors by
        the data: a slope times its predictor's standard deviation is N(0, 1), the intercept at the
        predictors' means N(log of the mean of y, 2.5^2).
      intercept: whether to put a column of ones first, so that the first coefficient is the
        intercept.
      weights: as for `models.logistic`.
      offset: added to x . theta, one number for each row.
      exposure: over what each count was seen (time, area, persons): the offset is its logarithm.
      standardize: as for `models.logistic`.
      outcome: the column of y, for a table on disk (`amagold.data.open`) in place of X; its other
        columns are the predictors.
    """
    given = RowTerms(weights, with_exposure(offset, exposure))
    sheet, observed = table_of(X, y, outcome, intercept, given)
    check_offset(sheet.rows)
    events, mean = counts(observed, sheet.num_rows, sheet.rows)
    center = log_rate(mean, sheet.num_observations) - sheet.rows.log_mean_exposure
    design = design_of(sheet, of_link(center), prior_scale, standardize)
    return regression(
        Poisson(),
        examples_of(CountExample, design.predictors, events, sheet.rows),
        design.prior,
        design.transform,
    )
