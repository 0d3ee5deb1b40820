"""The horizontal or vertical scale of a chart: round ticks, and places in percent, so that a chart
is as wide as the page lets it be.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from amagold.report._rounded_numbers import rounded

STEPS = (1.0, 2.0, 5.0, 10.0)


class AxisTick(NamedTuple):
    place: float  # percent of the way
    label: str


class ChartScale(NamedTuple):
    """From `low` at 0% to `high` at 100%."""

    low: float
    high: float
    ticks: tuple[AxisTick, ...]

    def place(self, value: float) -> float:
        """Where a value is, in percent; what lies beyond an end is at the end."""
        share = (value - self.low) / (self.high - self.low)
        return round(100.0 * min(1.0, max(0.0, share)), 3)


def scale_of(values: Iterable[float], *, most_ticks: int = 6, room: float = 0.04) -> ChartScale:
    """A scale on which all finite values are seen, with a little room at both ends."""
    known = [value for value in values if math.isfinite(value)] or [0.0]
    low, high = min(known), max(known)
    if high <= low:
        reach = abs(low) or 1.0
        low, high = low - 0.5 * reach, high + 0.5 * reach
    spare = room * (high - low)
    return _ticked(low - spare, high + spare, most_ticks)


def between(low: float, high: float, most_ticks: int = 6) -> ChartScale:
    """A scale with these ends."""
    return _ticked(low, high, most_ticks)


def _ticked(low: float, high: float, most_ticks: int) -> ChartScale:
    step = _round_step((high - low) / most_ticks)
    decimals = -math.floor(math.log10(step) + 1e-9)
    first, last = math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9)
    scale = ChartScale(low, high, ())
    ticks = [
        AxisTick(scale.place(number * step), rounded(number * step, decimals))
        for number in range(first, last + 1)
    ]
    return scale._replace(ticks=tuple(ticks))


def _round_step(least: float) -> float:
    """1, 2 or 5 times a power of ten, at least this large."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(step * power for step in STEPS if step * power >= least * (1.0 - 1e-9))
