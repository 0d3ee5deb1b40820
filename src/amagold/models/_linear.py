"""Bayesian linear regression with Gaussian noise."""

from jax.typing import ArrayLike

from amagold.data import Data
from amagold.models._default_priors import mean_and_deviation, of_numbers
from amagold.models._design import noisy_design_of
from amagold.models._noise_shapes import Gaussian
from amagold.models._outcomes import numbers_beyond
from amagold.models._residuals import from_design
from amagold.models._row_terms import RowTerms
from amagold.models._table import table_of
from amagold.target import Posterior


def linear(
    X: ArrayLike | Data,
    y: ArrayLike | None = None,
    prior_scale: float | None = None,
    intercept: bool = True,
    *,
    noise_scale: float | None = None,
    weights: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    standardize: bool | None = None,
    outcome: str | None = None,
) -> Posterior:
    """The posterior of a linear regression, y ~ N(x . theta, noise_scale^2), with independent
    normal priors.

    `amagold.sample` reports a dict of `coefficients` on the scale of X and y, the intercept first,
    and `log_noise_scale`; with a known noise scale the coefficients alone.

    Args:
      X: predictors, one row per example.
      y: outcomes.
      prior_scale: standard deviation of the prior on every coefficient. None scales the priors by
        the data: a slope times its predictor's standard deviation is N(0, (2.5 sd(y))^2), the
        intercept at the predictors' means N(mean(y), (2.5 sd(y))^2).
      intercept: whether to put a column of ones first, so that the first coefficient is the
        intercept.
      noise_scale: standard deviation of the noise; None when it is unknown: its log has the prior
        N(log sd(y), 2^2).
      weights: as for `models.logistic`.
      offset: added to x . theta, one number for each row.
      standardize: as for `models.logistic`, the outcomes included.
      outcome: the column of y, for a table on disk (`amagold.data.open`) in place of X; its other
        columns are the predictors.
    """
    sheet, observed = table_of(X, y, outcome, intercept, RowTerms(weights, offset))
    response = numbers_beyond(observed, sheet)
    outcomes = mean_and_deviation(response, sheet.has_intercept, sheet.rows)
    design = noisy_design_of(
        sheet, response, outcomes, of_numbers(outcomes), prior_scale, standardize, noise_scale
    )
    return from_design(Gaussian(), design)
