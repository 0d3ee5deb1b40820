"""One false-alarm rate for the whole suite, from which every statistical threshold follows."""

import math

import numpy as np
from scipy.stats import norm

# the chance that any statistical check of the suite fails on correct code, with fresh seeds
SUITE_FALSE_ALARM_RATE = 1e-3
NUM_CHECKS = 400  # more than the suite has


def threshold(comparisons: int = 1) -> float:
    """How many standard errors the largest of `comparisons` deviations may reach in one check."""
    return float(norm.isf(SUITE_FALSE_ALARM_RATE / NUM_CHECKS / comparisons / 2.0))


def deviations(samples: np.ndarray, expected: float | np.ndarray = 0.0) -> np.ndarray:
    """(mean - expected) in standard errors, for independent samples along the first axis."""
    samples = np.asarray(samples, np.float64)
    error = samples.std(axis=0, ddof=1) / math.sqrt(len(samples))
    return (samples.mean(axis=0) - expected) / np.maximum(error, 1e-300)


def worst(samples: np.ndarray, expected: float | np.ndarray = 0.0) -> float:
    """The largest deviation as a share of its threshold: at most 1 on correct code, far above on
    broken code.
    """
    found = np.abs(np.atleast_1d(deviations(samples, expected)))
    return float(np.max(found) / threshold(found.size))


# a planted bug must exceed the threshold by this factor, so that it is not caught by luck
PLANTED = 1.5
