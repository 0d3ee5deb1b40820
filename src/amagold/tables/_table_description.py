"""A table in a few figures, for the report and for those who load the run later."""

from typing import Any

import numpy as np

from amagold.core.optional_packages import required
from amagold.models._coded_rows import CodedTable
from amagold.models._regression import Likelihood
from amagold.models._row_terms import NOTHING, RowTerms
from amagold.report._table_facts import MOST_LEVELS, NUM_BINS, ColumnFacts, TableFacts
from amagold.tables._terms import FormulaTerms
from amagold.target import Posterior

BLOCK = 2**14  # rows that are looked at together


def describe_table(
    frame: Any,
    num_read: int,
    outcome: str,
    classes: tuple[str, ...],
    terms: FormulaTerms,
    coded: CodedTable,
    rows: RowTerms = NOTHING,
    num_different: int | None = None,
    num_weightless: int = 0,
) -> TableFacts:
    """The facts of the columns that were used.

    Args:
      frame: a narwhals frame, without the rows that were dropped.
      num_read: rows of the table as it came.
      outcome: the column of the outcome.
      classes: of an outcome that is a text: the second is one.
      terms: of the formula.
      coded: the predictors.
      rows: what they count: predictors are told as if every observation had a row of its own.
      num_different: rows after equal ones were merged; None where none were.
      num_weightless: rows that were left out because they count nothing.
    """
    names = sorted(frame.columns, key=lambda name: name != outcome)
    each = {outcome: rows.weights} | dict.fromkeys(terms.columns, rows.counts)
    of_groups = {name for group in terms.parsed.groups for name in group.columns}
    columns = tuple(
        describe_column(name, frame[name], each.get(name), name in of_groups) for name in names
    )
    spreads, references = spreads_of(coded, rows.counts), references_of(terms)
    counts = num_read, len(frame), num_different
    stands_for = None if rows.counts is None else rows.total(len(frame))
    about = outcome, classes, columns, spreads, references
    return TableFacts(*counts, *about, num_weightless, stands_for)


def describe_column(
    name: str, column: Any, counts: np.ndarray | None = None, has_levels: bool = False
) -> ColumnFacts:
    """A column of a narwhals frame in a few figures, its rows as often as they count."""
    if has_levels or not column.dtype.is_numeric():
        return _levels(name, column, counts)
    values = np.asarray(column.to_numpy(), np.float64)
    each, is_known = counts, np.isfinite(values)
    if not is_known.all():
        values, each = values[is_known], None if counts is None else counts[is_known]
    if not len(values):
        return ColumnFacts(name, (), (), (), 0)
    low, high = float(values.min()), float(values.max())
    figures = (float(np.average(values, weights=each)), _deviation(values, each), low, high)
    found = _few_values(values, each)
    if found is not None:
        levels = tuple(
            (f"{value:g}", amount)
            for value, amount in zip(found, _amounts(found.values()), strict=True)
        )
        return ColumnFacts(name, figures, (), levels, len(levels))
    bars = np.histogram(values, NUM_BINS, (low, high), weights=each)[0]
    return ColumnFacts(name, figures, tuple(_amounts(bars)), (), 0)


def _few_values(values: np.ndarray, counts: np.ndarray | None) -> dict[float, float] | None:
    """The different values in their order, and how often each counts; None where they are many."""
    found: dict[float, float] = {}
    for start in range(0, len(values), BLOCK):
        some = slice(start, start + BLOCK)
        each, place = np.unique(values[some], return_inverse=True)
        if len(each) > MOST_LEVELS:
            return None
        amounts = np.bincount(place, None if counts is None else counts[some])
        for value, amount in zip(each.tolist(), amounts.tolist(), strict=True):
            found[value] = found.get(value, 0) + amount
        if len(found) > MOST_LEVELS:
            return None
    return dict(sorted(found.items()))


def num_distinct(target: Posterior) -> int | None:
    """Rows after equal ones were merged; None where none were."""
    likelihood = target.log_likelihood
    if not isinstance(likelihood, Likelihood) or likelihood.merged is None:
        return None
    return int(likelihood.merged[1])


def spreads_of(coded: CodedTable, counts: np.ndarray | None = None) -> dict[str, float]:
    """Standard deviations of the predictors that are numbers, by term; 1 of zeros and ones, which
    are compared with each other.
    """
    found = {}
    for name, values in zip(coded.names, coded.numbers.T, strict=False):
        is_flag = bool(((values == 0.0) | (values == 1.0)).all())
        spread = 1.0 if is_flag else _deviation(values, counts)
        if np.isfinite(spread) and spread > 0.0:
            found[name] = spread
    return found


def references_of(terms: FormulaTerms) -> dict[str, str]:
    """The level of each factor that has no coefficient, where that is one."""
    found = {}
    for term in terms.terms:
        known = terms.spec.encoder_state.get(term.name)
        if term.levels is None or known is None or "categories" not in known[1]:
            continue
        rest = [str(level) for level in known[1]["categories"]]
        rest = set(rest) - set(term.levels)
        if len(rest) == 1:
            found[term.name] = rest.pop()
    return found


def _deviation(values: np.ndarray, counts: np.ndarray | None) -> float:
    mean = np.average(values, weights=counts)
    away = values - mean
    return float(np.sqrt(np.average(np.square(away, out=away), weights=counts)))


def _amounts(counts: Any) -> list[float]:
    """Whole numbers where they are."""
    return [int(count) if count == int(count) else float(count) for count in counts]


def _levels(name: str, column: Any, counts: np.ndarray | None) -> ColumnFacts:
    """The most frequent values, counted by the table's own library."""
    nw = required("narwhals", "tables")
    if counts is None:
        found = column.alias("level").value_counts(sort=True, name="how_many")
    else:
        often = nw.new_series("how_many", counts, backend=column.implementation)
        frame = column.alias("level").to_frame().with_columns(often)
        found = frame.group_by("level").agg(nw.col("how_many").sum())
    levels, often = (found[part].to_list() for part in ("level", "how_many"))
    each = list(zip(map(str, levels), _amounts(often), strict=True))
    is_few = len(each) <= MOST_LEVELS
    each.sort(key=lambda found: found[0] if is_few else -found[1])
    return ColumnFacts(name, (), (), tuple(each[:MOST_LEVELS]), len(each))
