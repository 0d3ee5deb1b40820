"""Bayesian linear regression with Student-t noise, which outliers do not pull away."""

from jax.typing import ArrayLike

from amagold.core import checks
from amagold.data import Data
from amagold.models._default_priors import median_and_deviation, of_numbers
from amagold.models._design import noisy_design_of
from amagold.models._noise_shapes import StudentT
from amagold.models._outcomes import numbers_beyond
from amagold.models._residuals import from_design
from amagold.models._row_terms import RowTerms
from amagold.models._table import table_of
from amagold.target import Posterior


def robust(
    X: ArrayLike | Data,
    y: ArrayLike | None = None,
    prior_scale: float | None = None,
    intercept: bool = True,
    *,
    noise_scale: float | None = None,
    degrees_of_freedom: float = 4.0,
    weights: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    standardize: bool | None = None,
    outcome: str | None = None,
) -> Posterior:
    """The posterior of a linear regression with noise_scale times Student-t noise and independent
    normal priors.

    What is reported is as for `models.linear`. The posterior may have several modes when outliers
    agree with each other.

    Args:
      X: predictors, one row per example.
      y: outcomes.
      prior_scale: standard deviation of the prior on every coefficient. None scales the priors by
        the data, as for `models.linear` with the median of y for its mean and 1.4826 median
        absolute deviations for its standard deviation.
      intercept: whether to put a column of ones first, so that the first coefficient is the
        intercept.
      noise_scale: what the noise is multiplied by; None when it is unknown.
      degrees_of_freedom: of the noise; fewer make outliers matter less.
      weights: as for `models.logistic`.
      offset: added to x . theta, one number for each row.
      standardize: as for `models.logistic`, the outcomes included.
      outcome: the column of y, for a table on disk (`amagold.data.open`) in place of X; its other
        columns are the predictors.
    """
    checks.number("degrees_of_freedom", degrees_of_freedom, above=0.0, remedy="4 is usual")
    sheet, observed = table_of(X, y, outcome, intercept, RowTerms(weights, offset))
    response = numbers_beyond(observed, sheet)
    outcomes = median_and_deviation(response, sheet.has_intercept, sheet.rows)
    design = noisy_design_of(
        sheet, response, outcomes, of_numbers(outcomes), prior_scale, standardize, noise_scale
    )
    return from_design(StudentT(float(degrees_of_freedom)), design)
