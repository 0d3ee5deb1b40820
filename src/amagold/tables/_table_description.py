"""A table in a few figures, for the report and for those who load the run later."""

from typing import Any

import numpy as np

from amagold.report._table_facts import MOST_LEVELS, NUM_BINS, ColumnFacts, TableFacts

FIRST_LOOK = 10_000  # rows that tell whether a column has many different numbers


def describe_table(
    frame: Any,
    num_read: int,
    outcome: str,
    classes: tuple[str, ...],
    spreads: dict[str, float],
    num_distinct: int | None = None,
) -> TableFacts:
    """The facts of the columns that were used.

    Args:
      frame: a narwhals frame, without the rows that were dropped.
      num_read: rows of the table as it came.
      outcome: the column of the outcome.
      classes: of an outcome that is a text: the second is one.
      spreads: standard deviations of the predictors that are numbers, by term.
      num_distinct: rows after equal ones were merged; None where none were.
    """
    names = sorted(frame.columns, key=lambda name: name != outcome)
    columns = tuple(describe_column(name, frame[name]) for name in names)
    return TableFacts(num_read, len(frame), num_distinct, outcome, classes, columns, spreads)


def describe_column(name: str, column: Any) -> ColumnFacts:
    """A column of a narwhals frame in a few figures."""
    if not column.dtype.is_numeric():
        return _levels(name, *_counted([str(value) for value in column.to_list()]))
    values = np.asarray(column.to_numpy(), np.float64)
    values = values[np.isfinite(values)]
    if not len(values):
        return ColumnFacts(name, (), (), (), 0)
    low, high = float(values.min()), float(values.max())
    figures = (float(values.mean()), float(values.std()), low, high)
    if len(np.unique(values[:FIRST_LOOK])) <= MOST_LEVELS:
        found, counts = np.unique(values, return_counts=True)
        if len(found) <= MOST_LEVELS:
            levels = tuple((f"{value:g}", int(count)) for value, count in zip(found, counts))
            return ColumnFacts(name, figures, (), levels, len(levels))
    counts = np.histogram(values, NUM_BINS, (low, high))[0]
    return ColumnFacts(name, figures, tuple(map(int, counts)), (), 0)


def _counted(texts: list[str]) -> tuple[np.ndarray, np.ndarray]:
    return np.unique(np.asarray(texts), return_counts=True)


def _levels(name: str, found: np.ndarray, counts: np.ndarray) -> ColumnFacts:
    most = np.argsort(-counts, kind="stable")[:MOST_LEVELS]
    levels = tuple((str(found[at]), int(counts[at])) for at in most)
    return ColumnFacts(name, (), (), levels, len(found))
