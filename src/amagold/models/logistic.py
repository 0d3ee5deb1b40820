"""Bayesian logistic regression."""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from amagold.models.priors import Normal
from amagold.target import Posterior, checks


class Example(NamedTuple):
    """One row of the table: its predictors and its outcome, -1 or 1."""

    predictors: jax.Array
    sign: jax.Array


def log_likelihood(coefficients: jax.Array, example: Example) -> jax.Array:
    """log p(y | x, theta) = -log(1 + exp(-y x . theta)), with y = -1 or 1."""
    return jax.nn.log_sigmoid(example.sign * jnp.dot(example.predictors, coefficients))


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
    return Posterior(log_likelihood, Normal(float(prior_scale)), data, init=np.zeros(predictors.shape[1], np.float32))
