"""Runs that are timed against each other sample the same thing, or their speeds say nothing."""

from typing import NamedTuple

import numpy as np

from amagold_lab.bench.measure import NoRatioError

# standard errors; blocks of one chain are not quite independent, so this is wider than it looks
TOLERATED_ERRORS = 5.0


class TimedRun(NamedTuple):
    """One run: leapfrog steps per second, and the mean acceptance and position, with axes (block,
    chain).
    """

    speed: float
    acceptance: np.ndarray
    mean: np.ndarray


def check_runs_agree(ours: list[TimedRun], theirs: list[TimedRun]) -> None:
    """Raise when acceptance or mean differ by more than the Monte Carlo error of both."""
    for quantity in ("acceptance", "mean"):
        (left, left_error), (right, right_error) = (
            _estimate([getattr(run, quantity) for run in runs]) for runs in (ours, theirs)
        )
        if not abs(left - right) <= TOLERATED_ERRORS * np.hypot(left_error, right_error):
            raise NoRatioError(f"void: {quantity} {left:.4f} here, {right:.4f} in C")


def _estimate(runs: list[np.ndarray]) -> tuple[float, float]:
    """Mean and standard error: from independent chains where there are many, else from the blocks
    of the one.
    """
    blocks = np.concatenate(runs)
    values = blocks.mean(axis=0) if blocks.shape[1] > 1 else blocks[:, 0]
    return float(values.mean()), float(values.std() / np.sqrt(len(values)))
