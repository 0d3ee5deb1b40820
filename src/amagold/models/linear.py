"""Bayesian linear regression with Gaussian noise."""

from jax.typing import ArrayLike

from amagold.models.outcomes import numbers
from amagold.models.residuals import Example, Gaussian, noisy_regression
from amagold.models.table import table_of
from amagold.target import Posterior


def linear(
    X: ArrayLike,
    y: ArrayLike,
    prior_scale: float = 1.0,
    intercept: bool = True,
    *,
    noise_scale: float | None = 1.0,
    standardize: bool = False,
) -> Posterior:
    """The posterior of a linear regression, y ~ N(x . theta, noise_scale^2), with independent N(0, prior_scale^2) priors.

    A position holds the coefficients on the scale of X, the intercept first; with an unknown noise scale it is a dict of `coefficients`
    and `log_noise_scale`, which has the prior N(0, 2^2).

    Args:
      X: predictors, one row per example.
      y: outcomes.
      prior_scale: standard deviation of the prior on every coefficient.
      intercept: whether to put a column of ones first, so that the first coefficient is the intercept.
      noise_scale: standard deviation of the noise; None when it is unknown.
      standardize: as for `models.logistic`.
    """
    table = table_of(X, intercept, standardize)
    data = Example(table.predictors, numbers(y, len(table.predictors)))
    return noisy_regression(Gaussian(), data, prior_scale, table.columns, noise_scale)
