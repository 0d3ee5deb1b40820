"""One record per posterior: how a user writes it, and what is known of it."""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

Draws = dict[str, np.ndarray]  # by variable, with axes (chain, draw, ...)


class Truth(NamedTuple):
    """What is known of one number of the posterior; `errors` are those of a reference that was
    itself sampled.
    """

    name: str
    of: Callable[[Draws], np.ndarray]  # -> (chain, draw)
    # None where the posterior has none, or too heavy tails for its error to be known
    mean: float | None
    variance: float | None
    lower: tuple[float, float]  # a place, and the probability below it
    upper: tuple[float, float]  # a place, and the probability above it
    errors: tuple[float, float, float, float] = (0.0, 0.0, 0.0, 0.0)


class Row(NamedTuple):
    """A posterior of the suite."""

    name: str
    target: Callable[[], Any]
    truths: Callable[[], list[Truth]]
    source: str  # where the truth is from: formula, quadrature or reference run
    note: str = ""  # on the data, where they stand for others


class Functional(NamedTuple):
    """An expectation that a run estimates, and its true value."""

    name: str
    of: Callable[[Draws], np.ndarray]
    value: float
    error: float
    spread: float  # the standard deviation of a draw, where the truth tells it; else zero


def functionals(truth: Truth) -> list[Functional]:
    """Mean, variance about the true mean, and the two tail probabilities."""
    found = []
    if truth.mean is not None:
        mean, spread = truth.mean, 0.0 if truth.variance is None else truth.variance**0.5
        found.append(Functional(f"mean of {truth.name}", truth.of, mean, truth.errors[0], spread))
        if truth.variance is not None:
            # E (x - mean)^2
            square = Functional(
                f"variance of {truth.name}",
                lambda draws: (truth.of(draws) - mean) ** 2,
                truth.variance,
                truth.errors[1],
                0.0,
            )
            found.append(square)
    for side, (place, probability), error in (
        ("lower", truth.lower, truth.errors[2]),
        ("upper", truth.upper, truth.errors[3]),
    ):
        sign = -1.0 if side == "lower" else 1.0

        def outside(draws: Draws, sign: float = sign, place: float = place) -> np.ndarray:
            return (sign * (truth.of(draws) - place) > 0).astype(np.float64)

        spread = (probability * (1.0 - probability)) ** 0.5
        found.append(
            Functional(f"{side} tail of {truth.name}", outside, probability, error, spread)
        )
    return found


def coordinate(variable: str, *index: int) -> Callable[[Draws], np.ndarray]:
    """One number of a variable."""
    return lambda draws: draws[variable][(slice(None), slice(None), *index)]
