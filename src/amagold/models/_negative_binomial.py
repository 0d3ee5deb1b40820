"""Bayesian negative binomial regression of counts that scatter more than Poisson's."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike

from amagold.models._default_priors import log_rate, of_link
from amagold.models._design import design_of
from amagold.models._outcomes import counts
from amagold.models._poisson import CountExample
from amagold.models._regression import family, regression
from amagold.models._row_terms import RowTerms, check_offset, with_exposure
from amagold.models._stirling import stirling_remainder
from amagold.models._table import table_of
from amagold.target import LinearBounds, Posterior


def largest_third(z: jax.Array, example: CountExample) -> jax.Array:
    """Of the log density at the reference, along any unit vector."""
    count, shape, t = example.events, jnp.exp(z[1]), z[0] - z[1]
    soft, first = jax.nn.softplus(t), jax.nn.sigmoid(t)
    second = first * jax.nn.sigmoid(-t)
    of_shape = shape * (jnp.log1p(count / shape) + soft + 3.43 * first + 4.85 * second)
    return of_shape + 2.83 * (count + shape) * second


@family("negative_binomial", CountExample)
@dataclass(frozen=True)
class NegativeBinomial:
    """log p(y | z, k) with the mean m = exp(z) and the shape a = exp(k), var y = m + m^2 / a, up to
    a constant: y log(m / y) - (y + a) log((a + m) / (a + y)) - log(1 + y / a) / 2 + S(y + a) -
    S(a), S what Stirling's formula leaves of log Gamma.
    """

    def __call__(self, z: jax.Array, example: CountExample) -> jax.Array:
        count, shape = example.events, jnp.exp(z[1])
        is_some = count > 0
        d = jnp.where(is_some, z[0] - jnp.log(jnp.where(is_some, count, 1.0)), 0.0)
        # (a + m) / (a + y) = 1 + y (exp(d) - 1) / (a + y), d = log(m / y)
        some = count * d - (count + shape) * jnp.log1p(count / (count + shape) * jnp.expm1(d))
        none = -shape * jax.nn.softplus(z[0] - z[1])
        both = stirling_remainder(count + shape) - stirling_remainder(shape)
        return jnp.where(is_some, some - 0.5 * jnp.log1p(count / shape) + both, none)

    def mean(self, z: jax.Array) -> jax.Array:
        return jnp.exp(z[..., 0])

    def draw(self, key: jax.Array, z: jax.Array) -> jax.Array:
        """Poisson's, of a rate that is gamma distributed."""
        of_rate, of_count = jax.random.split(key)
        rate = jax.random.gamma(of_rate, jnp.exp(z[..., 1])) * jnp.exp(z[..., 0] - z[..., 1])
        return jax.random.poisson(of_count, rate).astype(jnp.float32)

    def log_density(self, y: jax.Array, z: jax.Array) -> jax.Array:
        shape, t, log_gamma = jnp.exp(z[..., 1]), z[..., 0] - z[..., 1], jax.scipy.special.gammaln
        ways = log_gamma(y + shape) - log_gamma(shape) - log_gamma(y + 1.0)
        return ways + y * t - (y + shape) * jax.nn.softplus(t)

    def bounds(self, predictor: Any) -> LinearBounds:
        """With t = z - k and L(t) = log(1 + exp(t)), log p = G(k) + y t - (y + a) L(t), G(k) =
        sum_{j < y} log(j + a). Each term of G is logistic in k, with second derivative
        a j / (j + a)^2 <= a / (j + a) and a third that is no larger: both sums are at most
        a log(1 + y / a), for j >= 1 below the integral of a / (x + a), and zero for j = 0.

        Along a unit vector (p, q) of (z, k), t moves by r = p - q, and the third derivative is
        q^3 G''' - y r^3 L''' - a (q^3 L + 3 q^2 r L' + 3 q r^2 L'' + r^3 L'''), with |L'''| <= L''.
        On the unit circle q^2 |r| <= 1.143, |q| r^2 <= 1.6165 and |r|^3 <= 2.8285, which makes
        S = a (log(1 + y / a) + L + 3.43 L' + 4.85 L'') + 2.83 (y + a) L''; the second derivative,
        q^2 G'' - y r^2 L'' - a (q^2 L + 2 q r L' + r^2 L''), is no larger, with |q r| <= 1.21.

        Moving along (p, q), a log(1 + y / a) grows at most as exp(|q|), y L'' as exp(|r|), and
        a L, a L' and a L'' as exp(|q| + |r|), where |q| + |r| <= sqrt 5.
        """
        return LinearBounds(
            predictor, self, (math.inf, 1.0, 1.0), scale=largest_third, growth=5.0**0.5
        )


def negative_binomial(
    X: ArrayLike,
    y: ArrayLike,
    prior_scale: float | None = None,
    intercept: bool = True,
    *,
    weights: ArrayLike | None = None,
    offset: ArrayLike | None = None,
    exposure: ArrayLike | None = None,
    standardize: bool | None = None,
) -> Posterior:
    """The posterior of a negative binomial regression, E[y] = exp(x . theta), with independent
    normal priors.

    `amagold.sample` reports a dict of `coefficients` on the scale of X and of `log_shape`: the
    variance is m + m^2 / shape at the mean m.

    Args:
      X: predictors, one row per example.
      y: counts, whole numbers from 0.
      prior_scale: as for `models.poisson`. The log of the shape has the prior N(0, 2^2).
      intercept: whether to put a column of ones first, so that the first coefficient is the
        intercept.
      weights: as for `models.logistic`.
      offset: added to x . theta, one number for each row.
      exposure: as for `models.poisson`.
      standardize: as for `models.logistic`.
    """
    given = RowTerms(weights, with_exposure(offset, exposure))
    sheet, observed = table_of(X, y, None, intercept, given)
    check_offset(sheet.rows)
    events, mean = counts(observed, sheet.num_rows, sheet.rows)
    center = log_rate(mean, sheet.num_observations) - sheet.rows.log_mean_exposure
    design = design_of(sheet, of_link(center), prior_scale, standardize, log_shape=0.0)
    data = CountExample(design.predictors, jnp.asarray(events), **sheet.rows.stored())
    return regression(NegativeBinomial(), data, design.prior, design.transform)
