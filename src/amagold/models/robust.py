"""Bayesian linear regression with Student-t noise, which outliers do not pull away."""

from jax.typing import ArrayLike

from amagold.models.outcomes import numbers
from amagold.models.residuals import Example, StudentT, noisy_regression
from amagold.models.table import table_of
from amagold.target import Posterior, checks


def robust(
    X: ArrayLike,
    y: ArrayLike,
    prior_scale: float = 1.0,
    intercept: bool = True,
    *,
    noise_scale: float | None = 1.0,
    degrees_of_freedom: float = 4.0,
    standardize: bool = False,
) -> Posterior:
    """The posterior of a linear regression with noise_scale times Student-t noise and independent N(0, prior_scale^2) priors.

    A position is as for `models.linear`. The posterior may have several modes when outliers agree with each other.

    Args:
      X: predictors, one row per example.
      y: outcomes.
      prior_scale: standard deviation of the prior on every coefficient.
      intercept: whether to put a column of ones first, so that the first coefficient is the intercept.
      noise_scale: what the noise is multiplied by; None when it is unknown.
      degrees_of_freedom: of the noise; fewer make outliers matter less.
      standardize: as for `models.logistic`.
    """
    checks.number("degrees_of_freedom", degrees_of_freedom, above=0.0, remedy="4 is usual")
    table = table_of(X, intercept, standardize)
    data = Example(table.predictors, numbers(y, len(table.predictors)))
    return noisy_regression(StudentT(float(degrees_of_freedom)), data, prior_scale, table.columns, noise_scale)
