"""A table in a few figures, for the report and for those who load the run later."""

from typing import Any

import numpy as np

from amagold.core.arrays import count_non_finite, spreads
from amagold.models._coded_rows import CodedTable
from amagold.models._regression import Likelihood
from amagold.report._table_facts import MOST_LEVELS, NUM_BINS, ColumnFacts, TableFacts
from amagold.tables._terms import FormulaTerms
from amagold.target import Posterior

FIRST_LOOK = 10_000  # rows that tell whether a column has many different numbers


def describe_table(
    frame: Any,
    num_read: int,
    outcome: str,
    classes: tuple[str, ...],
    terms: FormulaTerms,
    coded: CodedTable,
    num_different: int | None = None,
) -> TableFacts:
    """The facts of the columns that were used.

    Args:
      frame: a narwhals frame, without the rows that were dropped.
      num_read: rows of the table as it came.
      outcome: the column of the outcome.
      classes: of an outcome that is a text: the second is one.
      terms: of the formula.
      coded: the predictors.
      num_different: rows after equal ones were merged; None where none were.
    """
    names = sorted(frame.columns, key=lambda name: name != outcome)
    columns = tuple(describe_column(name, frame[name]) for name in names)
    spreads, references = spreads_of(coded), references_of(terms)
    counts = num_read, len(frame), num_different
    return TableFacts(*counts, outcome, classes, columns, spreads, references)


def describe_column(name: str, column: Any) -> ColumnFacts:
    """A column of a narwhals frame in a few figures."""
    if not column.dtype.is_numeric():
        return _levels(name, column)
    values = np.asarray(column.to_numpy())
    if values.dtype.kind not in "iuf":  # decimals
        values = values.astype(np.float64)
    if count_non_finite(values):
        values = values[np.isfinite(values)]
    if not len(values):
        return ColumnFacts(name, (), (), (), 0)
    low, high = float(values.min()), float(values.max())
    spread = float(spreads(values[:, None])[0])
    figures = (float(values.mean(dtype=np.float64)), spread, low, high)
    if len(np.unique(values[:FIRST_LOOK])) <= MOST_LEVELS:
        found, counts = np.unique(values, return_counts=True)
        if len(found) <= MOST_LEVELS:
            levels = tuple(
                (f"{float(value):g}", int(count))
                for value, count in zip(found, counts, strict=True)
            )
            return ColumnFacts(name, figures, (), levels, len(levels))
    counts = np.histogram(values, NUM_BINS, (low, high))[0]
    return ColumnFacts(name, figures, tuple(map(int, counts)), (), 0)


def num_distinct(target: Posterior) -> int | None:
    """Rows after equal ones were merged; None where none were."""
    likelihood = target.log_likelihood
    if not isinstance(likelihood, Likelihood) or likelihood.merged is None:
        return None
    return int(likelihood.merged[1])


def spreads_of(coded: CodedTable) -> dict[str, float]:
    """Standard deviations of the predictors that are numbers, by term; 1 of zeros and ones, which
    are compared with each other.
    """
    found = {}
    for name, values in zip(coded.names, coded.numbers.T, strict=False):
        is_flag = bool(((values == 0.0) | (values == 1.0)).all())
        spread = 1.0 if is_flag else float(np.std(values))
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


def _levels(name: str, column: Any) -> ColumnFacts:
    """The most frequent values, counted by the table's own library."""
    found = column.alias("level").value_counts(sort=True, name="how_many")
    levels, counts = (found[part].to_list() for part in ("level", "how_many"))
    each = list(zip(map(str, levels), map(int, counts), strict=True))
    is_few = len(each) <= MOST_LEVELS
    each.sort(key=lambda found: found[0] if is_few else -found[1])
    return ColumnFacts(name, (), (), tuple(each[:MOST_LEVELS]), len(each))
