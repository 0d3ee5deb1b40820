"""Columns of a table as small bars."""

from typing import NamedTuple

from amagold.report._rounded_numbers import percent, plain, whole
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
    words: str
    bars: tuple[Bar, ...]  # of numbers, from the lowest to the highest
    levels: tuple[LevelBar, ...]
    lowest: str
    highest: str


def column_chart(column: ColumnFacts, is_factor: bool) -> ColumnChart:
    """Bars for a histogram, or for levels; numbers may be used as a factor."""
    most = max(column.counts, default=0) or 1
    step = 100.0 / (len(column.counts) or 1)
    bars = [
        Bar(round(at * step, 3), round(0.9 * step, 3), round(100.0 * count / most, 2))
        for at, count in enumerate(column.counts)
    ]
    ends = [plain(end, 4) for end in column.figures[2:]] or ["", ""]
    return ColumnChart(
        column.name,
        _words(column, is_factor or not column.figures),
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


def _words(column: ColumnFacts, is_factor: bool) -> str:
    if column.is_flag:
        return "zeros and ones"
    if column.figures and not (is_factor and column.levels):
        mean, deviation = (plain(figure) for figure in column.figures[:2])
        return f"mean {mean}, sd {deviation}"
    if column.num_levels == len(column.levels):
        return f"{column.num_levels} levels"
    shown = ", ".join(f"{level} ({whole(count)})" for level, count in column.levels[:4])
    return f"{whole(column.num_levels)} levels, most often {shown}"
