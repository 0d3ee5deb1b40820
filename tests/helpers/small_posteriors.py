"""Small posteriors far from Gaussian, each with its density written a second time in numpy."""

from functools import cache
from typing import NamedTuple

import numpy as np
from quadrature import Exact, exact
from scipy.special import log_ndtr

import amagold
from amagold import models


class Case(NamedTuple):
    """A target, its exact density, a reference that is not its mode, and a step that moves well."""

    target: amagold.Posterior
    density: Exact
    center: np.ndarray
    step_size: float


SLOPES = np.array([0.4, 0.7, -0.3, 1.1, 1.6, -1.0, 2.0, 0.9, -1.4, 0.2, 2.4, -0.6], np.float32)
OUTCOMES = np.array([1, 1, 0, 1, 1, 0, 1, 1, 0, 0, 1, 1])
SIGNS = np.where(OUTCOMES > 0, 1.0, -1.0)
CLUMPS = np.array([-1.9, -1.8, -1.7, -1.6, -1.5, 1.2, 1.6, 1.8, 2.0, 2.4], np.float32)
FAR_APART = np.array([-2.0, 0.3, 2.2])
EVENTS = np.array([0, 1, 0, 2, 3, 0, 4, 1, 1, 0, 9, 0])


def _total(log_likelihood, a, b, prior_scale, outcomes):
    """log prior + sum over the examples, for the predictor a + b x."""
    total = -(a**2 + b**2) / (2.0 * prior_scale**2)
    for slope, outcome in zip(SLOPES.astype(np.float64), outcomes, strict=True):
        total = total + log_likelihood(a + b * slope, outcome)
    return total


@cache
def nearly_separable():
    """Logistic: all but two outcomes have the sign of their predictor, so the slope's posterior has
    a long tail.
    """
    density = exact(
        lambda a, b: _total(lambda z, sign: -np.logaddexp(0.0, -sign * z), a, b, 4.0, SIGNS),
        (-12.0, 16.0),
        (-8.0, 22.0),
    )
    return Case(
        models.logistic(SLOPES[:, None], OUTCOMES, prior_scale=4.0),
        density,
        np.array([0.3, 2.0], np.float32),
        0.5,
    )


@cache
def through_the_origin():
    """Logistic with one parameter, and a reference at zero, where the bounds of order 1 are
    attained.
    """

    def log_density(b):
        return -(b**2) / 8.0 - np.logaddexp(
            0.0, -np.multiply.outer(b, SIGNS * SLOPES.astype(np.float64))
        ).sum(axis=-1)

    target = models.logistic(SLOPES[:, None], OUTCOMES, prior_scale=2.0, intercept=False)
    return Case(target, exact(log_density, (-6.0, 16.0)), np.array([0.0], np.float32), 0.7)


@cache
def few_and_agreed():
    """Logistic with one parameter and six examples of one outcome: skewed, and with bounds so small
    that few arrivals are expected.
    """
    slopes = np.array([0.5, 0.8, 0.3, 0.6, 0.9, 0.4], np.float32)

    def log_density(b):
        return -(b**2) / 8.0 - np.logaddexp(
            0.0, -np.multiply.outer(b, slopes.astype(np.float64))
        ).sum(axis=-1)

    target = models.logistic(slopes[:, None], np.ones(6), prior_scale=2.0, intercept=False)
    return Case(target, exact(log_density, (-10.0, 14.0)), np.array([1.5], np.float32), 0.7)


@cache
def two_clumps():
    """Student-t: two groups of outcomes that disagree, so there are two modes."""

    def log_density(mean):
        residuals = np.subtract.outer(mean, CLUMPS.astype(np.float64)) / 0.7
        return -(mean**2) / 18.0 - 1.5 * np.log1p(residuals**2 / 2.0).sum(axis=-1)

    ones = np.ones((len(CLUMPS), 1))
    target = models.robust(
        ones, CLUMPS, prior_scale=3.0, intercept=False, noise_scale=0.7, degrees_of_freedom=2.0
    )
    return Case(target, exact(log_density, (-10.0, 10.0)), np.array([1.2], np.float32), 0.3)


@cache
def far_apart(unit):
    """Cauchy: three outcomes many noise scales apart, all lengths in multiples of the unit."""

    def log_density(mean):
        residuals = np.subtract.outer(mean / unit, FAR_APART) / 0.5
        return -((mean / unit) ** 2) / 18.0 - np.log1p(residuals**2).sum(axis=-1)

    settings = dict(
        prior_scale=3.0 * unit, intercept=False, noise_scale=0.5 * unit, degrees_of_freedom=1.0
    )
    target = models.robust(np.ones((len(FAR_APART), 1)), unit * FAR_APART, **settings)
    center = np.array([0.3 * unit], np.float32)
    return Case(target, exact(log_density, (-20.0 * unit, 20.0 * unit)), center, 0.6 * unit)


@cache
def counts():
    """Poisson."""
    density = exact(
        lambda a, b: _total(lambda z, events: events * z - np.exp(z), a, b, 1.0, EVENTS),
        (-5.0, 3.0),
        (-3.0, 4.0),
    )
    return Case(
        models.poisson(SLOPES[:, None], EVENTS, prior_scale=1.0),
        density,
        np.array([-0.6, 0.9], np.float32),
        0.07,
    )


@cache
def normal_link():
    """Probit."""
    density = exact(
        lambda a, b: _total(lambda z, sign: log_ndtr(sign * z), a, b, 3.0, SIGNS),
        (-6.0, 8.0),
        (-4.0, 12.0),
    )
    return Case(
        models.probit(SLOPES[:, None], OUTCOMES, prior_scale=3.0),
        density,
        np.array([0.2, 1.2], np.float32),
        0.35,
    )


@cache
def two_columns():
    """Softmax of two classes, of which only the difference matters to the data."""

    def log_density(a, b):
        differences = np.multiply.outer(b - a, SIGNS * SLOPES.astype(np.float64))
        return -(a**2 + b**2) / 8.0 - np.logaddexp(0.0, -differences).sum(axis=-1)

    target = models.softmax(SLOPES[:, None], OUTCOMES, prior_scale=2.0, intercept=False)
    density = exact(log_density, (-11.0, 9.0), (-9.0, 11.0))
    return Case(target, density, np.array([[-0.4, 0.7]], np.float32), 0.6)
