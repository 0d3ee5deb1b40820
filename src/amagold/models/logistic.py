"""Bayesian logistic regression."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from amagold.models.priors import Normal
from amagold.target import Posterior, checks
from amagold.target.bounds import LinearBounds


class Example(NamedTuple):
    """One row of the table: its predictors and its outcome, -1 or 1."""

    predictors: jax.Array
    sign: jax.Array


def predictor(coefficients: jax.Array, example: Example) -> jax.Array:
    """z = x . theta."""
    return jnp.dot(example.predictors, coefficients)


def outcome(z: jax.Array, example: Example) -> jax.Array:
    """log p(y | z) = -log(1 + exp(-y z)), with y = -1 or 1."""
    return jax.nn.log_sigmoid(example.sign * z)


def log_likelihood(coefficients: jax.Array, example: Example) -> jax.Array:
    """log p(y | x, theta)."""
    return outcome(predictor(coefficients, example), example)


# of log(1 + exp(-z)): its slope is below 1, its second derivative p (1 - p) <= 1/4, its third p (1 - p)(1 - 2p) <= 1 / (6 sqrt 3)
BOUNDS = LinearBounds(predictor, outcome, (1.0, 0.25, 1.0 / (6.0 * 3.0**0.5)))


def logistic(X: ArrayLike, y: ArrayLike, prior_scale: float = 1.0, intercept: bool = True) -> Posterior:
    """The posterior of a logistic regression with independent N(0, prior_scale^2) priors.

    Args:
      X: predictors, one row per example.
      y: outcomes, 0 or 1 (or -1 and 1, or booleans).
      prior_scale: standard deviation of the prior on every coefficient.
      intercept: whether to put a column of ones first, so that the first coefficient is the intercept.
    """
    predictors, outcomes = np.asarray(X, np.float32), np.asarray(y)
    if predictors.ndim != 2:
        raise ValueError(f"X must have a row per example and a column per predictor, got shape {predictors.shape}; reshape it")
    if outcomes.shape != predictors.shape[:1]:
        raise ValueError(f"y must have one outcome for each of the {len(predictors)} rows of X, got shape {outcomes.shape}")
    found = set(np.unique(outcomes).tolist())
    if not (found <= {0, 1} or found <= {-1, 1}):
        raise ValueError(f"y must hold 0 and 1 (or -1 and 1), got {sorted(found)[:5]}; code the outcome as two classes")
    checks.number("prior_scale", prior_scale, above=0.0, remedy="give the prior's standard deviation")
    if intercept:
        predictors = np.column_stack([np.ones(len(predictors), np.float32), predictors])
    signs = np.where(outcomes > 0, 1.0, -1.0).astype(np.float32)
    data = Example(jnp.asarray(predictors), jnp.asarray(signs))
    init = np.zeros(predictors.shape[1], np.float32)
    return Posterior(log_likelihood, Normal(float(prior_scale)), data, init=init, bounds=BOUNDS)
