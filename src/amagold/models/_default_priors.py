"""Priors where none are given, scaled by the data: weak on any scale, so that units do not matter.

With w the width that the model's predictor z may well have, one standard deviation of a predictor
moves z by a coefficient of N(0, w^2), and z at the predictors' means is N(center, (2.5 spread)^2):

| model | w | center | spread |
|---|---|---|---|
| logistic, probit, poisson, gamma, negative_binomial | 1 | the link of the mean outcome | 1 |
| softmax | 1 | 0 | 1 |
| linear | 2.5 spread | mean of y | standard deviation of y |
| robust | 2.5 spread | median of y | 1.4826 median absolute deviations of y |

An unknown noise scale s has log s ~ N(log spread, 2^2): within a factor of 50 of the outcomes' own
spread, nineteen times in twenty; an unknown shape of a gamma distribution log a ~ N(log(mean^2 /
variance), 2^2), that of a negative binomial N(0, 2^2). Without an intercept everything is measured
from zero.
"""

import math
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from amagold.models._row_terms import NOTHING, RowTerms
from amagold.models._stored_table import StoredOutcome

WIDE = 2.5
LOG_NOISE_SCALE = 2.0


class Widths(NamedTuple):
    """How wide the default priors are, in the units of z."""

    slope: float  # of one standard deviation of a predictor
    center: float  # of the intercept at the predictors' means
    intercept: float


class Location(NamedTuple):
    """Where outcomes lie, and how far apart."""

    center: float
    spread: float


def of_link(center: float) -> Widths:
    """Of a model whose z is a log odds, a log rate, or the like."""
    return Widths(1.0, center, WIDE)


def of_numbers(outcomes: Location) -> Widths:
    """Of a model whose z has the units of the outcome."""
    return Widths(WIDE * outcomes.spread, outcomes.center, WIDE * outcomes.spread)


def log_odds(share: float, num_examples: float) -> float:
    """The logit of the share of ones, half an observation away from none and from all."""
    share = away_from_ends(share, num_examples)
    return math.log(share) - math.log1p(-share)


def normal_quantile(share: float, num_examples: float) -> float:
    """The probit of the share of ones, likewise."""
    return NormalDist().inv_cdf(away_from_ends(share, num_examples))


def log_rate(mean: float, num_examples: float) -> float:
    """The log of the mean count, of half an event at least."""
    return math.log(max(mean, 0.5 / num_examples))


def mean_and_deviation(
    outcomes: np.ndarray | StoredOutcome, has_intercept: bool, rows: RowTerms = NOTHING
) -> Location:
    """Mean and standard deviation; without an intercept, zero and the root mean square."""
    if isinstance(outcomes, StoredOutcome):
        center = outcomes.mean if has_intercept else 0.0
        spread = math.hypot(outcomes.deviation, outcomes.mean - center)
        return Location(center, _positive(spread, center))
    center = rows.mean(outcomes) if has_intercept else 0.0
    with np.errstate(over="ignore"):  # what is too wide is refused by name
        spread = math.sqrt(rows.mean((outcomes - center) ** 2))
    return Location(center, _positive(spread, center))


def median_and_deviation(
    outcomes: np.ndarray | StoredOutcome, has_intercept: bool, rows: RowTerms = NOTHING
) -> Location:
    """The same by medians, which outliers do not move; of data on disk by those of some rows."""
    if isinstance(outcomes, StoredOutcome):
        outcomes = outcomes.some()
    center = rows.median(outcomes) if has_intercept else 0.0
    spread = 1.4826 * rows.median(np.abs(outcomes - center))
    return Location(
        center, spread if spread > 0 else mean_and_deviation(outcomes, has_intercept, rows).spread
    )


def away_from_ends(share: float, num_examples: float) -> float:
    """By half an observation at least, so that its link is finite."""
    least = 0.5 / max(num_examples, 1.0)  # weights may add up to less than one row
    return min(max(share, least), 1.0 - least)


def _positive(spread: float, center: float) -> float:
    """Outcomes that are all the same have no spread of their own."""
    return spread if spread > 0 else abs(center) or 1.0
