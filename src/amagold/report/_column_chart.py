"""Columns of a table as small bars."""

from typing import NamedTuple

from amagold.report._rounded_numbers import percent, short, whole
from amagold.report._table_facts import ColumnFacts


class Bar(NamedTuple):
    """In percent of the chart."""

    start: float
    width: float
    height: float


class LevelBar(NamedTuple):
    level: str
    share: str
    width: float  # percent of the largest


class ColumnChart(NamedTuple):
    name: str
    kind: str
    words: str
    bars: tuple[Bar, ...]  # of numbers, from the lowest to the highest
    levels: tuple[LevelBar, ...]
    lowest: str
    highest: str


def column_chart(column: ColumnFacts) -> ColumnChart:
    """Bars for a histogram, or for levels."""
    most = max(column.counts, default=0) or 1
    step = 100.0 / (len(column.counts) or 1)
    bars = [
        Bar(round(at * step, 3), round(0.9 * step, 3), round(100.0 * count / most, 2))
        for at, count in enumerate(column.counts)
    ]
    ends = [short(end, 4) for end in column.figures[2:]] or ["", ""]
    return ColumnChart(
        column.name,
        "numbers" if column.figures else "factor",
        _words(column),
        tuple(bars),
        _level_bars(column),
        *ends,
    )


def _level_bars(column: ColumnFacts) -> tuple[LevelBar, ...]:
    total = sum(count for _, count in column.levels)
    if not total or (column.num_levels > len(column.levels)):
        return ()
    largest = max(count for _, count in column.levels)
    return tuple(
        LevelBar(level, percent(count / total), round(100.0 * count / largest, 2))
        for level, count in column.levels
    )


def _words(column: ColumnFacts) -> str:
    if column.figures:
        mean, deviation = (short(figure) for figure in column.figures[:2])
        return f"mean {mean}, sd {deviation}"
    shown = ", ".join(f"{level} ({whole(count)})" for level, count in column.levels[:3])
    return f"{whole(column.num_levels)} levels, most often {shown}"
