"""Tables that are larger than memory, coded a part at a time into temporary files.

What a formula means for a table, its levels and the states of its transformations, follows from few
rows: one of every level, those with the smallest and largest numbers, and some that stand for all.
"""

import dataclasses
from typing import Any, NamedTuple

import numpy as np

from amagold.core.progress import show_steps
from amagold.core.scratch import is_large, scratch
from amagold.models._coded_rows import CodedTable
from amagold.models._merged_rows import CLEARLY, MergedRows, are_chances, merged
from amagold.models._row_terms import RowTerms
from amagold.tables._data_warnings import doubts_about
from amagold.tables._formula_columns import FormulaColumns
from amagold.tables._formula_text import ParsedFormula
from amagold.tables._some_rows import ROWS_AT_ONCE, parts_of
from amagold.tables._term_checks import check_terms
from amagold.tables._term_codes import has_levels
from amagold.tables._terms import FormulaTerms, terms_of

STANDING_FOR_ALL = 2**18  # rows, whose quantiles and spreads are near those of all
HELD = 2**20  # different rows that are merged with each other at a time


class CodedParts(NamedTuple):
    """A large table: all rows in files, and the different ones in memory where they are few."""

    terms: FormulaTerms
    table: CodedTable
    merged: MergedRows | None


def coded_parts(
    formula: ParsedFormula,
    frame: Any,
    observed: np.ndarray,
    rows: RowTerms,
    family: str | None,
    classes: np.ndarray | None,
    shown: bool | None = None,
) -> CodedParts:
    """What the right side of a formula means for a large table; `classes` as for `terms_of`. Rows
    that are alike are merged where a family is given.
    """
    few = frame[representative_rows(formula, frame).tolist()]
    terms, _ = terms_of(formula, few)
    merging = None if family is None else Merging(are_chances(observed, rows, family))
    table, start = None, 0
    with show_steps("Coding rows", shown=shown) as report:
        for part in parts_of(frame):
            coded = terms.coded(part)
            table = _room_for(coded, len(frame)) if table is None else table
            here = slice(start, start + len(coded))
            for to, given in zip(table[:3], coded[:3], strict=True):
                to[here] = given
            if merging is not None:
                own = RowTerms(*(None if values is None else values[here] for values in rows))
                merging.add(coded, observed[here], own)
            start += len(coded)
            report(start, len(frame))
    assert table is not None
    check_terms(terms.spec, terms.terms, table)
    doubts = doubts_about(table, terms.terms, classes, rows.trials)
    found = None if merging is None else merging.result()
    return CodedParts(dataclasses.replace(terms, doubts=doubts), table, found)


def representative_rows(formula: ParsedFormula, frame: Any) -> np.ndarray:
    """Numbers of rows that show every level, the ends of every column of numbers, and what is
    usual.
    """
    spread = np.linspace(0, len(frame) - 1, min(len(frame), STANDING_FOR_ALL)).astype(np.int64)
    found = [spread]
    seen: dict[str, set[Any]] = {}
    ends: dict[str, tuple[float, int, float, int]] = {}
    start = 0
    for part in parts_of(frame.select(*formula.columns) if formula.columns else frame):
        columns = FormulaColumns(part)
        factors = {
            name
            for each in formula.parts.values()
            if has_levels(each, columns)
            for name in each.reads.columns
        }
        for name in formula.columns:
            if name in factors:
                found.append(start + _new_levels(columns, name, seen.setdefault(name, set())))
            elif columns.is_number(name):
                ends[name] = _ends(np.asarray(columns.values(name)), start, ends.get(name))
        start += len(part)
    for _, first, _, last in ends.values():
        found.append(np.array([first, last], np.int64))
    return np.unique(np.concatenate(found))


def _new_levels(columns: FormulaColumns, name: str, seen: set[Any]) -> np.ndarray:
    """Rows of this part with levels that no part before had."""
    codes, values = columns.levels(name)
    met, first = np.unique(codes, return_index=True)
    new = [place for place, code in zip(first, met, strict=True) if values[code] not in seen]
    seen.update(values[code] for code in met)
    return np.asarray(new, np.int64)


def _ends(
    values: np.ndarray, start: int, before: tuple[float, int, float, int] | None
) -> tuple[float, int, float, int]:
    """The smallest and the largest number so far, and where they are."""
    low, high = int(np.argmin(values)), int(np.argmax(values))
    here = (float(values[low]), start + low, float(values[high]), start + high)
    if before is None:
        return here
    smallest = min(before[:2], here[:2])
    largest = max(before[2:], here[2:])
    return (*smallest, *largest)


def _room_for(like: CodedTable, num_rows: int) -> CodedTable:
    """Files for as many rows, in the form of a part that is coded."""
    numbers, codes, multipliers = (
        scratch((num_rows, part.shape[1]), part.dtype) for part in like[:3]
    )
    return CodedTable(numbers, codes, multipliers, like.names, like.sizes, like.multiplied_by)


class Merging:
    """Rows that are alike become one, part by part, as long as that leaves few of them."""

    def __init__(self, as_trials: bool) -> None:
        self._as_trials = as_trials
        self._held: list[MergedRows] = []
        self._num_seen = 0
        self._is_worth_it = True

    def add(self, table: CodedTable, outcomes: np.ndarray, rows: RowTerms) -> None:
        if not self._is_worth_it:
            return
        self._num_seen += len(table)
        self._keep(merged(table, outcomes, rows, as_trials=self._as_trials))
        if sum(len(each.table) for each in self._held) > HELD + ROWS_AT_ONCE:
            self._join()

    def result(self) -> MergedRows | None:
        """All different rows; None where they are too many."""
        if self._is_worth_it and self._held:
            self._join()
        if not self._is_worth_it or not self._held:
            return None
        return self._held[0]._replace(num_before=self._num_seen)

    def _keep(self, found: MergedRows | None) -> None:
        self._is_worth_it &= found is not None
        self._held = [*self._held, found] if found is not None else []

    def _join(self) -> None:
        table = _joined([each.table for each in self._held])
        outcomes = np.concatenate([each.outcomes for each in self._held])
        rows = RowTerms(
            *(
                None if parts[0] is None else np.concatenate(parts)
                for parts in zip(*(each.rows for each in self._held), strict=True)
            )
        )
        self._held = []
        self._keep(merged(table, outcomes, rows, as_trials=self._as_trials))
        if not self._held:
            return
        left = self._held[0].table
        size = sum(part.nbytes for part in left[:3])
        if len(left) > CLEARLY * self._num_seen or is_large(size):
            self._is_worth_it, self._held = False, []


def _joined(tables: list[CodedTable]) -> CodedTable:
    first = tables[0]
    numbers = np.concatenate([table.numbers for table in tables])
    codes = np.concatenate([table.codes for table in tables])
    multipliers = np.concatenate([table.multipliers for table in tables])
    return CodedTable(numbers, codes, multipliers, first.names, first.sizes, first.multiplied_by)
