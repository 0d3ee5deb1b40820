"""Rows that are alike, merged into one that counts as often: the same posterior from fewer rows."""

from typing import Any, NamedTuple

import numpy as np

from amagold.models._coded_rows import CodedTable
from amagold.models._row_terms import RowTerms, checked_rows

SAMPLE = 2**14  # rows, none of which is like another where merging is not worth a look
CLEARLY = 0.5  # of the rows, which merging must leave at most
BLOCK = 2**16  # rows that are looked at together
TWO_CLASSES = ("logistic", "probit")


class MergedRows(NamedTuple):
    """A table, its outcomes and what its rows count."""

    table: CodedTable
    outcomes: Any
    rows: RowTerms
    num_before: int

    @property
    def is_merged(self) -> bool:
        return len(self.table) < self.num_before


def merged_rows(
    table: CodedTable, outcomes: np.ndarray, given: RowTerms, family: str
) -> MergedRows:
    """Equal rows as one with the sum of their weights, where that makes the table clearly smaller.

    Rows of two classes that differ in nothing else become one of several trials.
    """
    unchanged = MergedRows(table, outcomes, given, len(table))
    rows, counts = checked_rows(given, len(table))
    if counts is not None:
        table, outcomes = table.take(counts), outcomes[counts]
    as_trials = are_chances(outcomes, rows, family)
    if not _has_alike(_compared(table, outcomes, rows, as_trials), len(table)):
        return unchanged
    found = merged(table, outcomes, rows, as_trials=as_trials, most=CLEARLY * len(table))
    if found is None:
        return unchanged
    return found._replace(num_before=unchanged.num_before)


def merged(
    table: CodedTable,
    outcomes: np.ndarray,
    rows: RowTerms,
    *,
    as_trials: bool,
    most: float = np.inf,
) -> MergedRows | None:
    """All rows that are alike as one; None where it cannot be done, or leaves more than `most`."""
    columns = _compared(table, outcomes, rows, as_trials)
    found = _groups(columns, len(table), most)
    if found is None:
        return None
    weights = np.ones(len(table)) if rows.weights is None else rows.weights
    offset = None if rows.offset is None else rows.offset[found.first]
    few = table.take(found.first)
    if as_trials:
        trials = weights if rows.trials is None else weights * rows.trials
        successes = np.where(outcomes > 0, outcomes, 0.0) * weights
        both = (np.bincount(found.group, each, len(few)) for each in (successes, trials))
        outcomes, trials = both
        return MergedRows(few, outcomes, RowTerms(None, offset, trials), len(table))
    total = np.bincount(found.group, weights, len(few))
    trials = None if rows.trials is None else rows.trials[found.first]
    terms = RowTerms(total, offset, trials)
    return MergedRows(few, outcomes[found.first], terms, len(table))


def are_chances(outcomes: np.ndarray, rows: RowTerms, family: str) -> bool:
    """Whether outcomes are of two classes, or successes of trials, and weights are whole."""
    weights = rows.weights
    if family not in TWO_CLASSES or (weights is not None and (weights != np.floor(weights)).any()):
        return False
    if rows.trials is not None:
        is_whole = np.all(outcomes == np.floor(outcomes))
        return bool(is_whole and np.all((outcomes >= 0) & (outcomes <= rows.trials)))
    are_two = np.all((outcomes == 0) | (outcomes == 1))
    return bool(are_two or np.all((outcomes == -1) | (outcomes == 1)))


def _compared(
    table: CodedTable, outcomes: np.ndarray, rows: RowTerms, as_trials: bool
) -> list[np.ndarray]:
    """The columns in which rows that are alike agree."""
    columns = [*table.codes.T, *table.numbers.T, *table.multipliers.T]
    columns += [] if rows.offset is None else [rows.offset]
    columns += [] if as_trials or rows.trials is None else [rows.trials]
    return columns + ([] if as_trials else [outcomes])


class AlikeRows(NamedTuple):
    first: np.ndarray  # a row of each group
    group: np.ndarray  # of each row


def _has_alike(columns: list[np.ndarray], num_rows: int) -> bool:
    """Whether some of the rows are equal, where that is not found by looking at all of them."""
    if num_rows <= SAMPLE:
        return True
    spread = np.linspace(0, num_rows - 1, SAMPLE).astype(np.int64)
    some = _fingerprints([column[spread] for column in columns], len(spread))
    return len(np.unique(some)) < len(spread)


def _groups(columns: list[np.ndarray], num_rows: int, most: float) -> AlikeRows | None:
    """Rows that are equal in all columns; None where they are more than `most`, and in the rare
    case that they cannot be told.
    """
    first, group = _sorted_groups(_fingerprints(columns, num_rows))
    if len(first) > most:
        return None
    # rows of one fingerprint that are not equal are next to impossible, and would be no merging
    is_equal = all(_are_alike(column, column[first], group) for column in columns)
    return AlikeRows(first, group) if is_equal else None


def _are_alike(column: np.ndarray, of_groups: np.ndarray, group: np.ndarray) -> bool:
    """Whether every row has its group's value."""
    parts = (slice(start, start + BLOCK) for start in range(0, len(column), BLOCK))
    return all(np.array_equal(column[rows], of_groups[group[rows]]) for rows in parts)


def _sorted_groups(bits: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The first row of each value, in the order of values, and which value each row has: as
    `np.unique` tells them, with half the memory.
    """
    order = np.argsort(bits, kind="stable").astype(np.int32 if len(bits) < 2**31 else np.int64)
    is_first = np.ones(len(bits), bool)
    for start in range(1, len(bits), BLOCK):
        some = bits[order[start - 1 : start + BLOCK]]
        is_first[start : start + BLOCK] = some[1:] != some[:-1]
    group = np.empty_like(order)
    group[order] = np.cumsum(is_first, dtype=order.dtype) - 1
    return order[is_first], group


def _fingerprints(columns: list[np.ndarray], num_rows: int) -> np.ndarray:
    """64 bits of each row, which nearly never agree for rows that differ (splitmix64)."""
    found = np.zeros(num_rows, np.uint64)
    for start in range(0, num_rows, BLOCK):
        bits = found[start : start + BLOCK]
        for column in columns:
            # -0 counts as 0
            values = column[start : start + BLOCK].astype(np.float64) + 0.0
            bits = bits * np.uint64(0x9E3779B97F4A7C15) + values.view(np.uint64)
            bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
            bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
            bits = bits ^ (bits >> np.uint64(31))
        found[start : start + BLOCK] = bits
    return found
