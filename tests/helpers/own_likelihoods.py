"""Likelihoods as users write them, of one to three predictors, with a few outcomes each."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln, logsumexp
from jax.scipy.stats import norm, t as student

from amagold.target._normal_tail import log_between


class Own(NamedTuple):
    """An outcome of numbers, examples of it, where its predictors are and how far they spread."""

    of_numbers: Any
    examples: list[dict[str, float]]
    z: tuple[float, ...]
    spread: tuple[float, ...]
    loose: float = 1.5  # how many times the largest derivative the bound may be


def _logistic(z, row):
    return jax.nn.log_sigmoid(row["sign"] * z[0])


def _probit(z, row):
    return norm.logcdf(row["sign"] * z[0])


def _complementary(z, row):
    """The cloglog link, P(y = 1) = 1 - exp(-exp(z))."""
    rate = jnp.exp(z[0])
    return jnp.where(row["y"] > 0, jnp.log(-jnp.expm1(-rate)), -rate)


def _poisson(z, row):
    return row["y"] * z[0] - jnp.exp(z[0]) - gammaln(row["y"] + 1.0)


def _truncated_poisson(z, row):
    """Of counts from 1."""
    return _poisson(z, row) - jnp.log(-jnp.expm1(-jnp.exp(z[0])))


def _student(z, row):
    return student.logpdf(row["y"] - z[0], 4.0)


def _censored_normal(z, row):
    residual = (row["y"] - z[0]) * jnp.exp(-z[1])
    return jnp.where(row["is_seen"] > 0, norm.logpdf(residual) - z[1], norm.logsf(residual))


def _truncated_normal(z, row):
    """Seen only between 0 and 1.5."""
    scale = jnp.exp(z[1])
    seen = log_between((0.0 - z[0]) / scale, 1.5 / scale)
    return norm.logpdf((row["y"] - z[0]) / scale) - z[1] - seen


def _zero_inflated_poisson(z, row):
    some = jax.nn.log_sigmoid(-z[1]) + _poisson(z, row)
    none = jnp.logaddexp(jax.nn.log_sigmoid(z[1]), jax.nn.log_sigmoid(-z[1]) - jnp.exp(z[0]))
    return jnp.where(row["y"] > 0, some, none)


def _negative_binomial(z, row):
    shape = jnp.exp(z[1])
    ways = gammaln(row["y"] + shape) - gammaln(shape) - gammaln(row["y"] + 1.0)
    return ways + row["y"] * z[0] + shape * z[1] - (row["y"] + shape) * jnp.logaddexp(z[0], z[1])


def _beta_binomial(z, row):
    a, b = jnp.exp(z[1]) * jax.nn.sigmoid(z[0]), jnp.exp(z[1]) * jax.nn.sigmoid(-z[0])
    y, n = row["y"], 10.0
    return (
        gammaln(y + a)
        + gammaln(n - y + b)
        - gammaln(n + a + b)
        - gammaln(a)
        - gammaln(b)
        + gammaln(a + b)
    )


def _weibull(z, row):
    """Survival times with censoring: log hazard where one ended, less the cumulative hazard."""
    shape = jnp.exp(z[1])
    log_time = jnp.log(row["time"]) - z[0]
    return row["is_seen"] * (z[1] + shape * log_time - z[0]) - jnp.exp(shape * log_time)


def _mixture(z, row):
    """Of two normals, one of which is as wide as log width says, and a share."""
    narrow = jax.nn.log_sigmoid(z[2]) + norm.logpdf(row["y"] - z[0])
    wide = jax.nn.log_sigmoid(-z[2]) + norm.logpdf(row["y"] - z[0], scale=jnp.exp(z[1]))
    return logsumexp(jnp.stack([narrow, wide]))


def _rows(name, *values, **others):
    return [{name: value, **others} for value in values]


SIGNS, COUNTS = _rows("sign", -1.0, 1.0), _rows("y", 0.0, 1.0, 4.0)
OF_TEN = _rows("y", 0.0, 3.0, 10.0)
TIMES = [*_rows("time", 0.3, 2.0, is_seen=1.0), *_rows("time", 0.3, 2.0, is_seen=0.0)]
CENSORED = [*_rows("y", -1.0, 2.5, is_seen=1.0), *_rows("y", -1.0, 2.5, is_seen=0.0)]

# as of some ten thousand examples
OWN = {
    "logistic": Own(_logistic, SIGNS, (0.4,), (0.02,), 1.1),
    "probit": Own(_probit, SIGNS, (0.4,), (0.02,), 1.1),
    "complementary log-log": Own(_complementary, COUNTS[:2], (-0.4,), (0.01,), 2.5),
    "poisson": Own(_poisson, COUNTS, (0.7,), (0.02,), 1.1),
    "truncated poisson": Own(_truncated_poisson, COUNTS[1:], (0.7,), (0.01,)),
    "student": Own(_student, _rows("y", -1.0, 0.5, 6.0), (0.4,), (0.01,)),
    "censored normal": Own(_censored_normal, CENSORED, (0.3, 0.2), (0.01, 0.005)),
    "truncated normal": Own(
        _truncated_normal, _rows("y", 0.1, 1.4), (-0.6, -0.2), (0.005, 0.005), 8.0
    ),
    "truncated normal far above": Own(
        _truncated_normal, _rows("y", 0.1, 1.4), (3.5, -0.2), (0.005, 0.005), 40.0
    ),
    "zero-inflated poisson": Own(_zero_inflated_poisson, COUNTS, (0.7, -1.0), (0.01, 0.02), 2.0),
    "negative binomial": Own(_negative_binomial, COUNTS, (0.7, 0.5), (0.01, 0.01), 8.0),
    "beta-binomial": Own(
        _beta_binomial, _rows("y", 0.0, 3.0, 10.0), (0.3, 1.0), (0.01, 0.01), 40.0
    ),
    "weibull": Own(_weibull, TIMES, (0.2, 0.3), (0.01, 0.005), 2.5),
    "mixture": Own(_mixture, _rows("y", 0.2, 3.0), (0.1, 1.0, 1.0), (0.01, 0.01, 0.02), 20.0),
}


def spread_rows(own):
    """A L^-T of predictors that are correlated and spread so far."""
    size = len(own.z)
    mixing = np.eye(size) + 0.4 * np.tri(size, k=-1)
    mixing /= np.linalg.norm(mixing, axis=1, keepdims=True)
    return (np.array(own.spread)[:, None] * mixing).astype(np.float32)
