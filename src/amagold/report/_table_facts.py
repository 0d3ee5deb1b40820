"""What is kept of a table with the draws: numbers of rows, and every column in a few figures."""

import math
from typing import Any, NamedTuple

MOST_LEVELS = 12  # that are kept by name
NUM_BINS = 24  # of a histogram


class ColumnFacts(NamedTuple):
    """A column that was used. One of numbers has figures and, where there are many different ones,
    counts in even bins from the lowest to the highest; others have their most frequent levels.
    """

    name: str
    figures: tuple[float, ...]  # mean, standard deviation, lowest, highest; or none
    # of rows as often as they count, which need not be whole
    counts: tuple[float, ...]
    levels: tuple[tuple[str, float], ...]
    num_levels: int

    @property
    def is_flag(self) -> bool:
        """Whether it holds zeros and ones."""
        return self.num_levels == 2 and self.figures[2:] == (0.0, 1.0)


class TableFacts(NamedTuple):
    """A table, as a run keeps it."""

    num_read: int  # rows
    num_used: int
    num_distinct: int | None  # rows after equal ones were merged; None where none were
    outcome: str
    classes: tuple[str, ...]  # of an outcome that is a text: the second is one
    columns: tuple[ColumnFacts, ...]  # the outcome first
    spreads: dict[str, float]  # standard deviations of the predictors that are numbers, by term
    references: dict[str, str]  # levels that the others of a factor are compared with, by term
    num_weightless: int = 0  # rows that were left out because they count nothing
    # what all rows stand for, by their weights and trials; None where each is one
    num_observations: float | None = None

    def to_json(self) -> dict[str, Any]:
        columns = [column._asdict() for column in self.columns]
        return {**self._asdict(), "columns": columns}

    @property
    def of_outcome(self) -> ColumnFacts | None:
        return next((column for column in self.columns if column.name == self.outcome), None)


def facts_from_json(stored: Any) -> TableFacts | None:
    """The facts of a stored run; None where there are none, or they are not of this form."""
    try:
        columns = tuple(_column(column) for column in stored["columns"])
        merged, stands_for = stored["num_distinct"], stored.get("num_observations")
        spreads = {_text(name): _number(sd) for name, sd in stored["spreads"].items()}
        references = {_text(name): _text(level) for name, level in stored["references"].items()}
        return TableFacts(
            _count(stored["num_read"]),
            _count(stored["num_used"]),
            None if merged is None else _count(merged),
            _text(stored["outcome"]),
            tuple(map(_text, stored["classes"])),
            columns,
            spreads,
            references,
            _count(stored.get("num_weightless", 0)),
            None if stands_for is None else _amount(stands_for),
        )
    except (AttributeError, KeyError, TypeError, ValueError):
        return None


def _column(stored: Any) -> ColumnFacts:
    figures = tuple(map(_number, stored["figures"]))
    if len(figures) not in (0, 4):
        raise ValueError("figures are four or none")
    return ColumnFacts(
        _text(stored["name"]),
        figures,
        tuple(map(_amount, stored["counts"])),
        tuple((_text(level), _amount(count)) for level, count in stored["levels"]),
        _count(stored["num_levels"]),
    )


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError("not a text")
    return value


def _count(value: Any) -> int:
    if type(value) is not int or value < 0:
        raise TypeError("not a count")
    return value


def _amount(value: Any) -> float:
    """A count that need not be whole."""
    if _number(value) < 0.0:
        raise TypeError("not an amount")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float) or not math.isfinite(value):
        raise TypeError("not a number")
    return float(value)
