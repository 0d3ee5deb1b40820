"""The effects of all levels of a group in one picture: in the order of their means, each with its
interval; of very many levels neighbours are drawn together.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from amagold.report._chart_scale import AxisTick, scale_of
from amagold.report._interval_chart import ratio_scale
from amagold.report._rounded_numbers import whole

MOST_BARS = 150  # levels that have a line each; of more, neighbours share one
NUM_PLACES = 150


class CaterpillarBar(NamedTuple):
    """One level, in percent of the way along and up."""

    across: float
    mean: float
    lower: float
    upper: float
    is_clear: bool


class CaterpillarChart(NamedTuple):
    """Places are percent from the top."""

    ticks: tuple[AxisTick, ...]  # along the side
    none: float  # where an effect of zero is
    bars: tuple[CaterpillarBar, ...]
    # polygons in a square of 1000 by 1000, of many levels in place of bars
    reach: str  # the furthest ends of neighbours
    band: str  # their average ends
    line: str  # their average mean
    each: int  # levels that are drawn together
    num_levels: int
    num_above: int  # whose intervals leave out zero
    num_below: int

    @property
    def words(self) -> str:
        clear = self.num_above + self.num_below
        told = f"{whole(clear)} of {whole(self.num_levels)} levels have a 90% interval that leaves "
        return (
            f"{told}out the average: {whole(self.num_above)} above it and "
            f"{whole(self.num_below)} below"
        )

    @property
    def how(self) -> str:
        """How to read it."""
        if not self.each:
            return "Levels in the order of their means, with 90% intervals."
        return (
            "Levels in the order of their means: the line is the mean, the dark band the average "
            f"90% interval of {whole(self.each)} neighbours, the pale one reaches to their "
            "furthest ends."
        )


def caterpillar_chart(
    mean: np.ndarray, lower: np.ndarray, upper: np.ndarray, *, ratio: bool
) -> CaterpillarChart | None:
    """Of the effects of all levels; on the scale of the link, with ticks of ratios if asked for.
    None where nothing is finite.
    """
    is_known = np.isfinite(mean) & np.isfinite(lower) & np.isfinite(upper)
    if not is_known.any():
        return None
    order = np.flatnonzero(is_known)[np.argsort(mean[is_known], kind="stable")]
    mean, lower, upper = mean[order], lower[order], upper[order]
    ends = [float(lower.min()), float(upper.max()), 0.0]
    scale = ratio_scale([math.exp(min(end, 600.0)) for end in ends]) if ratio else scale_of(ends)

    def up(values: np.ndarray) -> list[float]:
        return [round(100.0 - scale.place(value), 2) for value in values.tolist()]

    number = len(order)
    counts = int((lower > 0.0).sum()), int((upper < 0.0).sum())
    ticks, none = scale.ticks, round(100.0 - scale.place(0.0), 2)
    if number <= MOST_BARS:
        across = (100.0 * (np.arange(number) + 0.5) / number).round(3).tolist()
        is_clear = ((lower > 0.0) | (upper < 0.0)).tolist()
        bars = zip(across, up(mean), up(lower), up(upper), is_clear, strict=True)
        drawn = tuple(CaterpillarBar(*bar) for bar in bars)
        return CaterpillarChart(ticks, none, drawn, "", "", "", 0, number, *counts)
    starts = np.unique(np.linspace(0, number, NUM_PLACES, endpoint=False).astype(int))
    sizes = np.diff([*starts, number])
    across = (1000.0 * (starts + 0.5 * sizes) / number).tolist()

    def average(values: np.ndarray) -> list[float]:
        return up(np.add.reduceat(values, starts) / sizes)

    reach = _polygon(
        across, up(np.minimum.reduceat(lower, starts)), up(np.maximum.reduceat(upper, starts))
    )
    band = _polygon(across, average(lower), average(upper))
    line = _points(across, average(mean))
    each = math.ceil(number / NUM_PLACES)
    return CaterpillarChart(ticks, none, (), reach, band, line, each, number, *counts)


def _polygon(across: Sequence[float], low: Sequence[float], high: Sequence[float]) -> str:
    there = _points(across, high)
    back = _points(list(across)[::-1], list(low)[::-1])
    return f"{there} {back}"


def _points(across: Sequence[float], up: Sequence[float]) -> str:
    return " ".join(f"{x:.1f},{10.0 * y:.1f}" for x, y in zip(across, up, strict=True))
