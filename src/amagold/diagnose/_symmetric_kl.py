"""Symmetric Kullback-Leibler divergence of draws from a density that is known."""

from collections.abc import Callable

import numpy as np


def symmetric_kl(
    draws: np.ndarray,
    log_density: Callable[[np.ndarray], np.ndarray],
    bounds: tuple[float, float],
    num_bins: int = 100,
) -> float:
    """KL(p, q) + KL(q, p) on a histogram of `num_bins` over `bounds`, for draws of one number.

    The density is integrated over each bin; half a count is added to every bin, so that an empty
    one costs a finite amount.
    """
    low, high = bounds
    edges = np.linspace(low, high, num_bins + 1)
    # composite Simpson in each bin
    middles = 0.5 * (edges[1:] + edges[:-1])
    value = lambda at: np.exp(np.asarray(log_density(at), np.float64))  # noqa: E731
    truth = (value(edges[:-1]) + 4.0 * value(middles) + value(edges[1:])) / 6.0
    counts = np.histogram(np.clip(np.asarray(draws).ravel(), low, high), edges)[0]
    return float(symmetric_kl_of_counts(counts, truth))


def symmetric_kl_of_counts(counts: np.ndarray, masses: np.ndarray) -> np.ndarray:
    """KL(p, q) + KL(q, p) between counts per cell, on the last axis, and the cells' true masses;
    half a count is added to every cell.
    """
    raised = counts + 0.5
    found = raised / raised.sum(axis=-1, keepdims=True)
    truth = masses / masses.sum()
    return np.sum((found - truth) * (np.log(found) - np.log(truth)), axis=-1)
