"""What draws are worth, by one function for every sampler: effective draws of the worst coordinate
or squared coordinate.
"""

from typing import NamedTuple

import numpy as np

from amagold.diagnose._convergence import minimum_ess
from amagold_lab.bench.measure import NoRatioError

TOLERATED_ERRORS = 5.0  # joint Monte Carlo errors, of many coordinates at once
ENOUGH = 50.0  # effective draws, below which neither the figure nor its error can be trusted


class TimedDraws(NamedTuple):
    """Draws with axes (chain, draw, coordinate), and the wall time before the first of them and of
    all of them.

    Gradients are counted one after the other, each of all chains side by side, where the sampler
    says how many it took.
    """

    values: np.ndarray
    setup_seconds: float
    sampling_seconds: float
    setup_gradients: int = 0
    sampling_gradients: int = 0

    @property
    def num_effective(self) -> float:
        return effective_draws(self.values)

    @property
    def per_second(self) -> float:
        """Effective draws per second, after warm-up and compilation."""
        return self.num_effective / self.sampling_seconds

    def seconds_to(self, num_effective: float) -> float:
        """Wall time to as many effective draws from nothing, at the measured rate."""
        return self.setup_seconds + num_effective / self.per_second


def effective_draws(values: np.ndarray) -> float:
    """The smallest bulk effective sample size of all coordinates and of their squares about the
    mean of all draws.

    The squares count because trajectories that swing from side to side find the mean sooner than
    the spread.
    """
    import xarray

    centred = np.asarray(values, np.float64)
    centred = centred - centred.mean(axis=(0, 1))
    dimensions = ("chain", "draw", "coordinate")
    return minimum_ess(
        xarray.Dataset({"coordinates": (dimensions, centred), "squares": (dimensions, centred**2)})
    )


def check_draws_agree(ours: TimedDraws, theirs: TimedDraws, name: str) -> None:
    """Raise when means or variances differ by more than the Monte Carlo error of both, or when a
    side has too few draws to tell.
    """
    for who, side in (("here", ours), (f"in {name}", theirs)):
        if side.num_effective < ENOUGH:
            raise NoRatioError(
                f"void: {side.num_effective:.0f} effective draws {who}, give more --seconds"
            )
    errors = largest_difference(ours.values, theirs.values)
    if not errors <= TOLERATED_ERRORS:
        raise NoRatioError(
            f"void: a mean or variance differs from that of {name} by {errors:.1f} Monte Carlo "
            "errors"
        )


def largest_difference(left: np.ndarray, right: np.ndarray) -> float:
    """Over coordinates: the difference of means, and of variances, in joint Monte Carlo errors."""
    middle = left.mean(axis=(0, 1), dtype=np.float64)
    found = [
        np.abs(differences(power(left, middle), power(right, middle))).max()
        for power in (_first, _second)
    ]
    return float(max(found))


def differences(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Of the means of every coordinate, in joint Monte Carlo errors."""
    (mean, error), (other, other_error) = (_mean_and_error(values) for values in (left, right))
    return (mean - other) / np.hypot(error, other_error)


def _mean_and_error(values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    from arviz_stats import ess  # pyright: ignore[reportPrivateImportUsage]

    sizes = np.asarray(ess(values, method="mean", chain_axis=0, draw_axis=1))
    return values.mean(axis=(0, 1)), values.std(axis=(0, 1)) / np.sqrt(sizes)


def _first(values: np.ndarray, middle: np.ndarray) -> np.ndarray:
    return np.asarray(values, np.float64) - middle


def _second(values: np.ndarray, middle: np.ndarray) -> np.ndarray:
    # about one common point; a wrong mean shows here too, and is wrong anyway
    return _first(values, middle) ** 2
