"""Rows with their outcomes, as checks and comparisons of a model take them."""

from typing import Any, NamedTuple

import jax
import numpy as np

from amagold.core import checks
from amagold.core.freed_memory import give_back
from amagold.tables._coefficient_draws import CoefficientDraws
from amagold.tables._read_table import num_parquet_rows, read_table
from amagold.tables._table_model import TableModel
from amagold.tables._table_outcome import outcome_of


class ObservedRows(NamedTuple):
    """A frame without missing values, and what was observed in each of its rows."""

    frame: Any
    outcomes: np.ndarray
    model: TableModel

    def __len__(self) -> int:
        return len(self.outcomes)

    def z(self, draws: CoefficientDraws, rows: Any) -> jax.Array:
        """The predictors of some rows, by their numbers or a slice, under each of the draws."""
        some = self.frame[rows]
        return draws.z(self.model.terms.coded(some), self.model.offset(some))

    def some(self, num_rows: int, seed: int) -> "ObservedRows":
        """At most so many of the rows, drawn without replacement."""
        chosen = _chosen(len(self), num_rows, seed)
        if len(self) <= num_rows:
            return self
        return ObservedRows(self.frame[chosen.tolist()], self.outcomes[chosen], self.model)


def some_observed_rows(model: TableModel, table: Any, num_rows: int, seed: int) -> ObservedRows:
    """At most so many of them; the table itself is let go, and of a Parquet file never there."""
    _check_counts(model)
    source = model.table(table)
    count = None if model.arguments.get("drop_missing") else num_parquet_rows(source)
    if count is None:
        found = observed_rows(model, table).some(num_rows, seed)
    else:
        chosen = _chosen(count, num_rows, seed)
        outcomes = _outcomes(model, read_table(source, columns=[model.outcome]))[chosen]
        give_back()
        found = ObservedRows(model.rows(table, chosen), outcomes, model)
    give_back()
    return found


def observed_rows(model: TableModel, table: Any) -> ObservedRows:
    """The rows that were fitted, or those of a table."""
    _check_counts(model)
    frame = model.rows(table)
    return ObservedRows(frame, _outcomes(model, frame), model)


def _chosen(count: int, num_rows: int, seed: int) -> np.ndarray:
    """At most so many numbers of rows, drawn without replacement, in rising order."""
    checks.whole_number("num_rows", num_rows, at_least=1, remedy="give how many rows to use")
    checks.whole_number("seed", seed, at_least=0, remedy="give a whole number")
    if count <= num_rows:
        return np.arange(count)
    return np.sort(np.random.default_rng(seed).choice(count, num_rows, replace=False))


def _check_counts(model: TableModel) -> None:
    of_rows = [name for name in ("weights", "trials") if name in model.arguments]
    if of_rows:
        raise ValueError(
            f"checks and comparisons need rows that count once each, but the model has "
            f"{', '.join(of_rows)}; fit without, or compare predictions"
        )


def _outcomes(model: TableModel, frame: Any) -> np.ndarray:
    """Of all rows, whose classes must be those that were fitted."""
    outcomes, classes = outcome_of(model.outcome, frame, model.family)
    if classes != model.classes:
        raise ValueError(
            f"table must have the classes that were fitted in {model.outcome!r}, "
            f"{', '.join(map(repr, model.classes)) or 'which are numbers'}, got "
            f"{', '.join(map(repr, classes)) or 'numbers'}"
        )
    return outcomes
