"""The horizontal or vertical scale of a chart: round ticks, and places in percent, so that a chart
is as wide as the page lets it be.
"""

import math
from collections.abc import Iterable
from typing import NamedTuple

from amagold.report._rounded_numbers import rounded

STEPS = (1.0, 2.0, 5.0)


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


def _ticked(low: float, high: float, most_ticks: int) -> ChartScale:
    """With the smallest round step that makes no more ticks than this."""
    power = math.floor(math.log10((high - low) / most_ticks))
    every = (_numbers(low, high, step, power + more) for more in range(3) for step in STEPS)
    numbers, step, exponent = next(found for found in every if len(found[0]) <= most_ticks)
    scale = ChartScale(low, high, ())
    values = [number * step * 10.0**exponent for number in numbers]
    ticks = tuple(AxisTick(scale.place(value), rounded(value, -exponent)) for value in values)
    return scale._replace(ticks=ticks)


def _numbers(low: float, high: float, step: float, exponent: int) -> tuple[range, float, int]:
    """The multiples of a step between two ends."""
    size = step * 10.0**exponent
    first, last = math.ceil(low / size - 1e-9), math.floor(high / size + 1e-9)
    return range(first, last + 1), step, exponent
