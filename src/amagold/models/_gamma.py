"""Bayesian gamma regression of positive numbers, with a log link and an unknown shape."""

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

from amagold.models._default_priors import of_link
from amagold.models._design import design_of
from amagold.models._outcomes import positive_numbers
from amagold.models._regression import family, regression
from amagold.models._row_terms import RowTerms, check_offset
from amagold.models._stirling import stirling_remainder
from amagold.models._table import NARROWEST, WIDEST, table_of
from amagold.target import LinearBounds, Posterior

LARGEST_BEND = 0.116  # of B(k) below: its second derivative is at most 0.115, its third 0.073


class PositiveExample(NamedTuple):
    """One row of the table: its predictors, and the logarithm of its outcome."""

    predictors: Any
    log_response: jax.Array
    weight: jax.Array | None = None
    offset: jax.Array | None = None


def largest_third(z: jax.Array, example: PositiveExample) -> jax.Array:
    """Of the log density at the reference, along any unit vector."""
    shape, ratio = jnp.exp(z[1]), jnp.exp(example.log_response - z[0])
    away = jnp.abs(ratio - 1.0)
    depth = shape * (ratio - 1.0 - (example.log_response - z[0])) + LARGEST_BEND
    return jnp.maximum(depth, shape * ratio) + 1.155 * shape * (away + ratio)


@family("gamma", PositiveExample)
@dataclass(frozen=True)
class Gamma:
    """log p(y | z, k) = a (d - exp(d) + 1) + B(k) up to a constant, with the shape a = exp(k),
    d = log y - z and B(k) = a log a - a - log Gamma(a): E[y] = exp(z), var y = exp(2 z) / a.
    """

    def __call__(self, z: jax.Array, example: PositiveExample) -> jax.Array:
        d, shape = example.log_response - z[0], jnp.exp(z[1])
        # B(k) = k / 2 - log(2 pi) / 2 - S(a), S what Stirling's formula leaves
        return shape * (d - jnp.expm1(d)) + 0.5 * z[1] - stirling_remainder(shape)

    def mean(self, z: jax.Array) -> jax.Array:
        return jnp.exp(z[..., 0])

    def draw(self, key: jax.Array, z: jax.Array) -> jax.Array:
        return jax.random.gamma(key, jnp.exp(z[..., 1])) * jnp.exp(z[..., 0] - z[..., 1])

    def log_density(self, y: jax.Array, z: jax.Array) -> jax.Array:
        d, shape = jnp.log(y) - z[..., 0], jnp.exp(z[..., 1])
        bend = 0.5 * (z[..., 1] - math.log(2.0 * math.pi)) - stirling_remainder(shape)
        return shape * (d - jnp.expm1(d)) + bend - jnp.log(y)

    def bounds(self, predictor: Any) -> LinearBounds:
        """With h(d) = d + 1 - exp(d), along a unit vector (p, q) of (z, k) the third derivative is
        a (q^3 h - 3 p q^2 h' + 3 p^2 q h'' - p^3 h''') + q^3 B''', with h' = 1 - exp(d) and
        h'' = h''' = -exp(d). As |p|^3 + |q|^3 <= 1 and p^2 |q|, |p| q^2 <= 0.385, it is at most
        S = max(a |h| + 0.116, a exp(d)) + 1.155 a (|1 - exp(d)| + exp(d)); so is the second, whose
        terms are a (q^2 h - 2 p q h' + p^2 h'') + q^2 B''.

        S grows with k by at most exp(|k - k_ref|), and with d by exp(1.54 |d - d_ref|): its slope
        is at most max(|1 - exp(d)|, exp(d)) + 2.31 exp(d), itself at least exp(d) + 1.155 (|1 -
        exp(d)| + exp(d)), and their ratio is largest at d = 0. sqrt(1 + 1.54^2) = 1.84.
        """
        return LinearBounds(predictor, self, (math.inf, 1.0, 1.0), scale=largest_third, growth=1.84)


def gamma(
    X: ArrayLike,
    y: ArrayLike,
    prior_scale: float | None = None,
    intercept: bool = True,
    *,
    weights: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    standardize: bool | None = None,
) -> Posterior:
    """The posterior of a gamma regression, E[y] = exp(x . theta), with independent normal priors.

    `amagold.sample` reports a dict of `coefficients` on the scale of X and of `log_shape`: the
    outcome's standard deviation is its mean divided by the root of the shape.

    Args:
      X: predictors, one row per example.
      y: outcomes above zero.
      prior_scale: standard deviation of the prior on every coefficient. None scales the priors by
        the data, as for `models.poisson`. The log of the shape has the prior N(log(mean(y)^2 /
        var(y)), 2^2).
      intercept: whether to put a column of ones first, so that the first coefficient is the
        intercept.
      weights: as for `models.logistic`.
      offset: added to x . theta, one number for each row.
      standardize: as for `models.logistic`.
    """
    sheet, observed = table_of(X, y, None, intercept, RowTerms(weights, offset))
    rows = sheet.rows
    check_offset(rows)
    response = positive_numbers(observed, sheet.num_rows)
    if not NARROWEST < response.max() < WIDEST:
        raise ValueError(
            f"y must have a largest number between {NARROWEST:g} and {WIDEST:g}, got "
            f"{response.max():g}; choose other units"
        )
    mean = rows.mean(response)
    spread = math.sqrt(rows.mean((response - mean) ** 2)) or mean
    center = math.log(mean) - rows.log_mean_exposure
    log_shape = 2.0 * (math.log(mean) - math.log(spread))
    design = design_of(sheet, of_link(center), prior_scale, standardize, log_shape=log_shape)
    log_response = jnp.asarray(np.log(response), jnp.float32)
    data = PositiveExample(design.predictors, log_response, **rows.stored())
    return regression(Gamma(), data, design.prior, design.transform)
