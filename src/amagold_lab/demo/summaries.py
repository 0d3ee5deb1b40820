"""Summaries of the draws of several coefficients, with axes (chain, draw, coefficient)."""

import numpy as np


def mean(draws: np.ndarray) -> np.ndarray:
    return draws.mean(axis=(0, 1))


def sd(draws: np.ndarray) -> np.ndarray:
    return draws.std(axis=(0, 1))


def interval(draws: np.ndarray) -> np.ndarray:
    """The central 90% of each coefficient: a row of lower and a row of upper ends."""
    return np.quantile(draws, [0.05, 0.95], axis=(0, 1))


def effective_draws(draws: np.ndarray) -> np.ndarray:
    """How many independent draws would know the mean as well, from the spread of the chains' own
    means.
    """
    return sd(draws) ** 2 / (draws.mean(axis=1).var(axis=0, ddof=1) / len(draws))


def r_hat(draws: np.ndarray) -> np.ndarray:
    """The potential scale reduction of each coefficient, over halves of the chains."""
    half = draws.shape[1] // 2
    halves = np.concatenate([draws[:, :half], draws[:, half : 2 * half]])
    within = halves.var(axis=1, ddof=1).mean(axis=0)
    between = halves.mean(axis=1).var(axis=0, ddof=1)
    return np.sqrt((half - 1) / half + between / within)
