"""Rows with their outcomes and what they count, as checks and comparisons of a model take them."""

from typing import Any, NamedTuple

import jax
import numpy as np

from amagold.core import checks
from amagold.models._row_terms import RowTerms, checked_rows
from amagold.tables._coefficient_draws import CoefficientDraws
from amagold.tables._drawn_rows import alike_rows, drawn, some_rows
from amagold.tables._table_model import TableModel
from amagold.tables._table_outcome import outcome_of


class ObservedRows(NamedTuple):
    """A frame without missing values, and what was observed in each of its rows."""

    frame: Any  # narwhals', or a `FileRows`
    outcomes: np.ndarray  # with trials how many of them succeeded
    model: TableModel
    weights: np.ndarray | None = None  # how often each row counts, above zero; None is once
    trials: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def times(self) -> np.ndarray:
        """How often each row counts."""
        return np.ones(len(self)) if self.weights is None else self.weights

    @property
    def counts(self) -> np.ndarray | None:
        """How many observations, and of trials how many of these, each row stands for; None is
        one.
        """
        return RowTerms(self.weights, None, self.trials).counts

    @property
    def origin(self) -> float:
        """What predictors, and outcomes that move along with them, are counted from."""
        return float(np.mean(self.outcomes)) if self.model.is_location else 0.0

    def z(self, draws: CoefficientDraws, rows: Any, origin: float) -> jax.Array:
        """The predictors of some rows, by their numbers or a slice, under each of the draws, from
        the origin.
        """
        some = self.frame[rows]
        return draws.z(self.model.inputs(some), origin)

    def take(self, numbers: np.ndarray, weights: np.ndarray | None) -> "ObservedRows":
        """Rows by their numbers, which may be there several times, with other weights."""
        trials = None if self.trials is None else self.trials[numbers]
        frame, outcomes = self.frame[numbers.tolist()], self.outcomes[numbers]
        return ObservedRows(frame, outcomes, self.model, weights, trials)

    def some(self, num_rows: int, seed: int) -> "ObservedRows":
        """At most so many of the rows, whose weights are such that they stand for all."""
        generator = _checked(num_rows, seed)
        if len(self) <= num_rows:
            return self
        counts = self.counts
        if counts is None:
            return self.take(alike_rows(len(self), num_rows, generator), None)
        numbers, likely = some_rows(counts, num_rows, generator)
        return self.take(numbers, self.times[numbers] / likely)

    def units(self, num_rows: int, seed: int) -> "ObservedRows":
        """A row for each time that one counts, at most so many of them, drawn without replacement.

        One that counts 2.5 times is three rows of 2.5 / 3 each.
        """
        generator = _checked(num_rows, seed)
        if self.weights is None:
            return self.take(alike_rows(len(self), num_rows, generator), None)
        times = self.times
        pieces = np.ceil(times)
        if pieces.sum() <= num_rows:
            often, share = pieces.astype(np.int64), times / pieces
        else:
            often = drawn(num_rows * times / times.sum(), generator)
            share = np.ones(len(self))
        numbers = np.repeat(np.arange(len(self)), often)
        is_even = bool((share[numbers] == share[numbers[0]]).all())
        return self.take(numbers, None if is_even else share[numbers])

    def by_trial(self) -> "ObservedRows":
        """Successes and failures as rows of their own, which count as often as they were seen."""
        if self.trials is None:
            return self
        times, failures = self.times, self.trials - self.outcomes
        won, lost = np.flatnonzero(self.outcomes > 0), np.flatnonzero(failures > 0)
        numbers = np.concatenate([won, lost])
        weights = np.concatenate([(times * self.outcomes)[won], (times * failures)[lost]])
        outcomes = np.concatenate([np.ones(len(won)), np.zeros(len(lost))])
        return ObservedRows(self.frame[numbers.tolist()], outcomes, self.model, weights)


def observed_rows(model: TableModel, table: Any, are_few: bool = False) -> ObservedRows:
    """The rows that were fitted, or those of a table; of a large file only those that will be asked
    for are read, where they are few.
    """
    kept = model.file_rows(table) if are_few else None
    # what is known of all rows, and where they are
    frame, rows_of = (kept[1], kept[0]) if kept is not None else (model.rows(table), None)
    outcomes, classes = outcome_of(model.outcome, frame, model.family)
    if classes != model.classes:
        raise ValueError(
            f"table must have the classes that were fitted in {model.outcome!r}, "
            f"{', '.join(map(repr, model.classes)) or 'which are numbers'}, got "
            f"{', '.join(map(repr, classes)) or 'numbers'}"
        )
    rows, _ = checked_rows(model.row_terms(frame), len(frame))
    whole = frame if rows_of is None else rows_of
    return ObservedRows(whole, outcomes, model, rows.weights, rows.trials)


def _checked(num_rows: int, seed: int) -> np.random.Generator:
    checks.whole_number("num_rows", num_rows, at_least=1, remedy="give how many rows to use")
    checks.whole_number("seed", seed, at_least=0, remedy="give a whole number")
    return np.random.default_rng(seed)
