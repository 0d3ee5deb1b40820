"""Dots and intervals: a row for each quantity, all on one scale."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from amagold.report._chart_scale import AxisTick, ChartScale, scale_of
from amagold.report._rounded_numbers import plain, rounded

# of ratios, until there are about as many as this
MOST_TICKS = 7
RATIO_TICKS = (
    (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0),
    (1.0, 1.5, 2.0, 3.0, 5.0, 7.0),
    (1.0, 2.0, 5.0),
    (1.0, 3.0),
    (1.0,),
)
NARROW = math.log(2.5)  # ratios between ends closer than this have even ticks


class Estimate(NamedTuple):
    """A quantity and its intervals."""

    label: str
    detail: str  # said more quietly beside it
    mean: float
    lower: float
    inner_lower: float
    inner_upper: float
    upper: float
    decimals: int
    is_ratio: bool = False  # whose error is a share of it: `decimals` are those of its logarithm

    def words(self) -> str:
        """The mean, and the interval in brackets."""
        return f"{self._digits(self.mean)} ({self.ends()})"

    def ends(self) -> str:
        return f"{self._digits(self.lower)} to {self._digits(self.upper)}"

    def _digits(self, value: float) -> str:
        if not (self.is_ratio and math.isfinite(value) and value > 0.0):
            return rounded(value, self.decimals)
        # an error of e in the logarithm is one of e times the ratio; two digits at least
        size = math.log10(value)
        return rounded(value, max(self.decimals - math.ceil(size), 1 - math.floor(size)))


class IntervalRow(NamedTuple):
    """An estimate, and its places in percent."""

    label: str
    detail: str
    words: str
    is_clear: bool  # whether the interval leaves out the line of no effect
    mean: float
    lower: float
    inner_lower: float
    inner_upper: float
    upper: float


class IntervalChart(NamedTuple):
    title: str
    axis: str  # what is along the scale
    rows: tuple[IntervalRow, ...]
    ticks: tuple[AxisTick, ...]
    line: float | None  # where there is no effect
    line_label: str

    @property
    def alternative(self) -> str:
        """For those who do not see it."""
        told = "; ".join(f"{row.label}: {row.words}" for row in self.rows[:12])
        rest = "" if len(self.rows) <= 12 else f"; and {len(self.rows) - 12} more"
        return f"{self.title}. {self.axis}, mean and 90% interval. {told}{rest}."


def interval_chart(
    title: str,
    axis: str,
    estimates: Sequence[Estimate],
    *,
    none: float | None = 0.0,
    is_ratio: bool = False,
) -> IntervalChart:
    """A chart of the estimates.

    Args:
      title: what the rows have in common.
      axis: what is along the scale.
      estimates: a row for each.
      none: the value of no effect, which is on the scale; None has no line.
      is_ratio: whether the estimates are ratios, on a scale of logarithms.
    """
    ends = [end for each in estimates for end in (each.lower, each.upper)]
    ends += [] if none is None else [none]
    scale = ratio_scale(ends) if is_ratio else scale_of(ends)

    def place(value: float) -> float:
        return scale.place(math.log(max(value, 1e-300)) if is_ratio else value)

    rows = [
        IntervalRow(
            each.label,
            each.detail,
            each.words(),
            none is None or each.lower > none or each.upper < none,
            *(place(value) for value in each[2:7]),
        )
        for each in estimates
    ]
    line = None if none is None else place(none)
    return IntervalChart(title, axis, tuple(rows), scale.ticks, line, "no difference")


def ratio_scale(ends: list[float]) -> ChartScale:
    """A scale of logarithms, whose ticks say what they are the logarithms of."""
    logs = [math.log(end) for end in ends if end > 0.0 and math.isfinite(end)] or [0.0]
    scale = scale_of(logs, room=0.05)
    low, high = math.exp(scale.low), math.exp(min(scale.high, 600.0))
    if scale.high - scale.low < NARROW:
        # ticks that are even in the ratio itself
        even = scale_of([low, high], room=0.0)
        known = list(zip(_values(even), [tick.label for tick in even.ticks], strict=True))
    else:
        known = [(value, plain(value)) for value in _round_ratios(low, high)]
    ticks = [AxisTick(scale.place(math.log(value)), label) for value, label in known]
    return scale._replace(ticks=tuple(ticks))


def _values(scale: ChartScale) -> list[float]:
    width = (scale.high - scale.low) / 100.0
    return [scale.low + width * tick.place for tick in scale.ticks]


def _round_ratios(low: float, high: float) -> list[float]:
    """Round numbers between two ends, one of which is 1 where it is between them."""
    first, last = math.floor(math.log10(low)), math.ceil(math.log10(high))
    for steps in RATIO_TICKS:
        found = [
            step * 10.0**power
            for power in range(first, last + 1)
            for step in steps
            if low <= step * 10.0**power <= high
        ]
        if len(found) <= MOST_TICKS:
            return found
    every = -(-(last - first + 1) // MOST_TICKS)
    return [10.0**power for power in range(first, last + 1) if power % every == 0]
