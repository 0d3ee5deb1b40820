"""The two sides of a comparison sample the same thing, or their speeds say nothing."""

from typing import NamedTuple

import numpy as np

from amagold.bench.measure import NoRatioError

TOLERATED_ERRORS = 5.0  # standard errors; blocks are not quite independent, so this is wider than it looks


class Side(NamedTuple):
    """One run: leapfrog steps per second, and the mean acceptance and position in each of its blocks."""

    speed: float
    acceptance: np.ndarray
    mean: np.ndarray


def check_same(ours: list[Side], theirs: list[Side]) -> None:
    """Raise when acceptance or mean differ by more than the Monte Carlo error of both."""
    for quantity in ("acceptance", "mean"):
        left, right = (np.concatenate([getattr(side, quantity) for side in sides]) for sides in (ours, theirs))
        error = np.hypot(left.std() / np.sqrt(len(left)), right.std() / np.sqrt(len(right)))
        if abs(left.mean() - right.mean()) > TOLERATED_ERRORS * error:
            raise NoRatioError(f"void: {quantity} {left.mean():.4f} here, {right.mean():.4f} in C")
