"""Posteriors of a few rows with a level of their own, and their densities in float64."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from coded_tables import coded
from scipy import special, stats

from amagold import models

NUM_ROWS = 24
LEVELS = np.where(np.arange(NUM_ROWS) % 8 == 3, 0, -1).astype(np.int32)  # three rows of one
COUNTS = (np.arange(NUM_ROWS) * 7 % 5 // 2).astype(np.float64) + 3.0 * (LEVELS == 0)
TIMES = np.linspace(0.5, 1.5, NUM_ROWS)


def one_factor():
    """Counts with an intercept and a level of three rows."""
    table = coded(np.zeros((NUM_ROWS, 0)), LEVELS[:, None], (1,))
    return models.poisson(table, COUNTS, prior_scale=1.0)


def one_factor_density(a, b):
    total = -0.5 * (a**2 + b**2)
    for level, count in zip(LEVELS, COUNTS, strict=True):
        z = a + (b if level == 0 else 0.0)
        total = total + count * z - np.exp(z)
    return total


def multiplied():
    """Two levels, each times a number, and no intercept."""
    codes = np.where(LEVELS == 0, 1, 0).astype(np.int32)[:, None]
    table = coded(np.zeros((NUM_ROWS, 0)), codes, (2,), TIMES[:, None], (0,))
    return models.poisson(table, COUNTS, prior_scale=1.0, intercept=False)


def multiplied_density(a, b):
    total = -0.5 * (a**2 + b**2)
    for level, count, times in zip(LEVELS, COUNTS, TIMES.astype(np.float32), strict=True):
        z = times * (b if level == 0 else a)
        total = total + count * z - np.exp(z)
    return total


# numbers above zero, an eighth of them in one level
OF_LEVEL = np.arange(48) % 8 == 3
COSTS = stats.gamma.ppf((np.arange(48) * 7 % 48 + 0.5) / 48.0, 2.0, scale=0.5) * (1.0 + OF_LEVEL)


def with_shape():
    """A level, no intercept, and an unknown shape that all rows share."""
    table = coded(np.zeros((48, 0)), np.where(OF_LEVEL, 0, -1).astype(np.int32)[:, None], (1,))
    return models.gamma(table, COSTS, prior_scale=1.0, intercept=False)


def with_shape_density(b, k):
    shape = np.exp(k)
    center = 2.0 * np.log(COSTS.mean() / COSTS.std())
    total = -0.5 * (b**2 + ((k - center) / 2.0) ** 2)
    total = total + 48.0 * (shape * k - special.gammaln(shape)) + shape * np.log(COSTS).sum()
    total = total - shape * (OF_LEVEL.sum() * b + COSTS[OF_LEVEL].sum() * np.exp(-b))
    return total - shape * COSTS[~OF_LEVEL].sum()


GRADES = (np.arange(NUM_ROWS) * 7 % 6 // 2 + (LEVELS == 0)).clip(0, 2)


def ordered():
    """Three ordered classes, with a level of three rows and a gap that all rows share."""
    table = coded(np.zeros((NUM_ROWS, 0)), LEVELS[:, None], (1,))
    return models.ordinal(table, GRADES, prior_scale=1.0)


def ordered_density(a, b, t):
    gap = np.log1p(np.exp(0.5 * t))
    shares = [(np.sum(grade >= GRADES) / NUM_ROWS) for grade in (0, 1)]
    center = np.log(special.logit(shares[1]) - special.logit(shares[0]))
    # log gap ~ N(center, 1), as a density of t
    total = -0.5 * (a**2 + b**2 + (np.log(gap) - center) ** 2)
    total = total - np.log(gap) + np.log(special.expit(0.5 * t))
    for level in (-1, 0):
        z = a + (b if level == 0 else 0.0)
        ends = [0.0, special.expit(-z), special.expit(gap - z), 1.0]
        for grade in range(3):
            count = np.sum((grade == GRADES) & (level == LEVELS))
            total = total + count * np.log(ends[grade + 1] - ends[grade])
    return total


class Case(NamedTuple):
    """A posterior by quadrature, a place that is not quite its mode, and the arrivals above which a
    test looks at all rows: many chains wait for the one with the most.
    """

    model: Callable[[], Any]
    density: Callable[..., np.ndarray]
    ranges: tuple[tuple[float, float], ...]
    reference: tuple[float, ...] = (0.2, 0.6)
    most: float = 400.0


COUNTED = (-3.0, 2.5), (-3.0, 4.5)
OF_SHAPE, OF_GRADES = ((-1.2, 2.8), (-1.2, 2.4)), ((-3.5, 3.5), (-4.5, 5.5), (-5.0, 9.0))
CASES = {
    "one factor": Case(one_factor, one_factor_density, COUNTED),
    "multiplied": Case(multiplied, multiplied_density, COUNTED),
    "shape": Case(with_shape, with_shape_density, OF_SHAPE, (0.6, 0.8), 100.0),
    "ordered": Case(ordered, ordered_density, OF_GRADES, (0.4, 0.6, 1.4), 100.0),
}
