"""Small tables, a ready-made regression for each, and their log likelihoods by scipy."""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from scipy import special, stats

from amagold import models

GENERATOR = np.random.default_rng(7)
X = GENERATOR.normal(size=(60, 2)).astype(np.float32)
SIGNS = GENERATOR.random(60) < 0.5
CLASSES = GENERATOR.integers(0, 4, 60)
NUMBERS = GENERATOR.standard_t(3, 60).astype(np.float32)
COUNTS = GENERATOR.poisson(2.0, 60) - 1  # none to five
MOVED = X * np.float32([3.0, 0.01]) + np.float32([200.0, 5.0])  # in other units, and far from zero


class Family(NamedTuple):
    """A model and its outcomes, the z that the default prior of the intercept has for their mean,
    and the log likelihood of y given z by scipy: in float64, with all constants.
    """

    model: Callable[..., Any]
    y: np.ndarray
    link: Callable[[float], float]
    log_likelihoods: Callable[[np.ndarray, np.ndarray], np.ndarray]


FAMILIES = {
    "logistic": Family(
        models.logistic,
        SIGNS,
        special.logit,
        lambda y, z: special.log_expit(np.where(y, z, -z)),
    ),
    "probit": Family(
        models.probit, SIGNS, special.ndtri, lambda y, z: special.log_ndtr(np.where(y, z, -z))
    ),
    "softmax": Family(
        models.softmax,
        CLASSES,
        lambda mean: 0.0,
        lambda y, z: special.log_softmax(z, axis=-1)[np.arange(len(z)), y],
    ),
    "poisson": Family(
        models.poisson, COUNTS, np.log, lambda y, z: stats.poisson.logpmf(y, np.exp(z))
    ),
}


def make(name, X, **options):
    return FAMILIES[name].model(X, FAMILIES[name].y, **options)


MAKERS = {name: partial(make, name) for name in FAMILIES} | {
    "linear": lambda X, **options: models.linear(X, NUMBERS, noise_scale=0.7, **options),
    "robust": lambda X, **options: models.robust(
        X, NUMBERS, noise_scale=0.7, degrees_of_freedom=3.0, **options
    ),
    "linear, unknown noise": lambda X, **options: models.linear(
        X, NUMBERS, noise_scale=None, **options
    ),
    "robust, unknown noise": lambda X, **options: models.robust(
        X, NUMBERS, noise_scale=None, degrees_of_freedom=3.0, **options
    ),
}


class TwoNumbers(NamedTuple):
    """A model of a predictor z and the logarithm k of a scale or shape, and scipy's log likelihood
    of y given both.
    """

    model: Callable[..., Any]
    y: np.ndarray
    log_likelihoods: Callable[[np.ndarray, np.ndarray, float], np.ndarray]


def _negative_binomial(y, z, k):
    return stats.nbinom.logpmf(y, np.exp(k), 1.0 / (1.0 + np.exp(z - k)))


TWO_NUMBERS = {
    "gamma": TwoNumbers(
        models.gamma,
        np.exp(NUMBERS),
        lambda y, z, k: stats.gamma.logpdf(y, np.exp(k), scale=np.exp(z - k)),
    ),
    "negative_binomial": TwoNumbers(models.negative_binomial, COUNTS**2, _negative_binomial),
    "robust": TwoNumbers(
        partial(models.robust, degrees_of_freedom=3.0),
        NUMBERS,
        lambda y, z, k: stats.t.logpdf(y, 3.0, z, np.exp(k)),
    ),
}
KNOWN = [name for name in MAKERS if "unknown" not in name]


def wanted_log_likelihoods(name, z, noise_scale=0.7):
    """In float64, by scipy, with all constants."""
    if name in FAMILIES:
        return FAMILIES[name].log_likelihoods(FAMILIES[name].y, z)
    if name.startswith("linear"):
        return stats.norm.logpdf(NUMBERS, z, noise_scale)
    return stats.t.logpdf(NUMBERS, 3.0, z, noise_scale)


def random_position(target, scale=1.0):
    return jax.tree.map(
        lambda leaf: (scale * GENERATOR.normal(size=leaf.shape)).astype(np.float32), target.init
    )


def on_users_scale(target, position):
    """What `amagold.sample` would report of a position."""
    return (
        position
        if target.transform is None
        else target.transform(jax.tree.map(np.asarray, position))
    )
