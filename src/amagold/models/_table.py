"""A table of predictors as models keep it: checked, standardised where that is better, and stored
once in float32.
"""

from typing import Any, NamedTuple

import jax
import numpy as np

from amagold.core.arrays import as_numbers, blocks, count_non_finite
from amagold.core.devices import use_all_cores
from amagold.core.scratch import is_in_file, scratch
from amagold.data import Data
from amagold.models._coded_rows import CodedRows, CodedTable, coded_rows
from amagold.models._row_terms import NOTHING, RowTerms, checked_rows
from amagold.models._stored_table import (
    StoredColumns,
    StoredPredictors,
    stored_predictors,
    stored_table,
)

ALIGNMENT = 64  # bytes, at which JAX takes an array over as it is
# standard deviations between a column's mean and zero, beyond which float32 blurs the differences
FAR = 4096.0
AWAY = 4.0  # standard deviations from zero, beyond which intercept and slope go hand in hand
NARROWEST, WIDEST = 1e-18, 1e18  # whose squares float32 still has
UNEQUAL = 30.0  # between the widths of two columns, beyond which one step size fits neither


class Sheet(NamedTuple):
    """A checked table, and what its columns are like: everything about zero where there is no
    intercept.
    """

    values: np.ndarray | StoredColumns | CodedTable
    names: tuple[str, ...]  # of the columns, for sentences
    has_intercept: bool
    centers: np.ndarray  # that float32 has too; zero without an intercept
    # root mean square distance from the centers; one for a column that never changes
    scales: np.ndarray
    # of the means from zero, in standard deviations; zero for a column that never changes
    distances: np.ndarray
    idle: int | None  # the first column that says nothing beside the intercept
    rows: RowTerms = NOTHING

    @property
    def num_rows(self) -> int:
        return len(self.values)

    @property
    def num_observations(self) -> float:
        """How many the rows stand for."""
        return self.rows.total(self.num_rows)

    @property
    def is_far(self) -> bool:
        """Whether some column cannot be kept in float32 as it is."""
        return bool((self.distances > FAR).any())

    @property
    def asks_for_standardising(self) -> bool:
        """Whether columns lie far from zero, or are of very different widths, the intercept's own
        among them.
        """
        widths = np.append(self.scales, 1.0) if self.has_intercept else self.scales
        is_unequal = len(widths) > 0 and widths.max() > UNEQUAL * widths.min()
        return bool((self.distances > AWAY).any() and self.has_intercept) or is_unequal

    def stored(self, standardised: bool) -> jax.Array | StoredPredictors | CodedRows:
        """The predictors in one fresh array, ones first with an intercept; no other copy is
        made, and none of what is on disk.
        """
        if isinstance(self.values, StoredColumns):
            return stored_predictors(
                self.values,
                self.has_intercept,
                self.centers,
                self.scales,
                standardised=standardised,
            )
        if isinstance(self.values, CodedTable):
            numbers = self._as_array(self.values.numbers, standardised)
            return coded_rows(self.values, numbers, self.rows.counts, standardised=standardised)
        return self._as_array(self.values, standardised)

    def _as_array(self, values: np.ndarray, standardised: bool) -> jax.Array:
        first, width = int(self.has_intercept), values.shape[1]
        centers, scales = self.centers[:width], self.scales[:width]
        stored = _empty(values, self.num_rows, width + first)
        stored[:, :first] = 1.0
        with np.errstate(over="ignore"):  # what float32 cannot hold is refused with the data
            for rows in blocks(values):
                block = values[rows]
                stored[rows, first:] = (block - centers) / scales if standardised else block
        return jax.device_put(stored)


def table_of(
    X: Any, y: Any, outcome: str | None, intercept: bool, given: RowTerms = NOTHING
) -> tuple[Sheet, Any]:
    """The predictors, and the outcomes: arrays, or a table on disk and the column `outcome`. Rows
    of no weight are left out.
    """
    use_all_cores()  # before the first array is made
    if isinstance(X, CodedTable):
        rows, counts = checked_rows(given, len(X))
        if counts is not None:
            X, y = X.take(counts), np.asarray(y)[counts]
        return _coded_sheet(X, intercept, rows), y
    if isinstance(X, Data):
        if not given.is_empty:
            raise ValueError(
                "weights, offset and trials must not be given with data on disk; read the table "
                "into arrays, or build an amagold.Posterior"
            )
        if y is not None:
            raise ValueError(
                "y must not be given with data on disk; name their column with outcome=..."
            )
        columns, outcomes = stored_table(X, outcome)
        mean, variance = columns.of_all("mean"), columns.of_all("variance")
        varies = columns.of_all("lowest") < columns.of_all("highest")
        return _sheet(columns, columns.labels, intercept, mean, variance, varies), outcomes
    if outcome is not None:
        raise ValueError(
            "outcome must not be given with arrays, it names a column of data on disk; give y"
        )
    if y is None:
        raise ValueError("y must be given: an outcome for each row of X")
    if given.is_empty:
        return sheet_of(X, intercept), y
    names = _names_of(X)
    values = checked_table(X, names)
    rows, counts = checked_rows(given, len(values))
    if counts is not None:
        outcomes = np.asarray(as_numbers("y", y))
        if len(outcomes) != len(values):
            raise ValueError(
                f"y must have an outcome for each of the {len(values)} rows of X, got "
                f"{len(outcomes)}"
            )
        values, y = values[counts], outcomes[counts]
    return _measured(values, names, intercept, rows), y


def _coded_sheet(table: CodedTable, intercept: bool, rows: RowTerms) -> Sheet:
    """Levels lie about zero, and all are as wide."""
    num_levels = sum(table.sizes)
    has_numbers = table.numbers.shape[1] > 0 or intercept
    names = tuple(f"term {name!r}" for name in table.names)
    width = table.numbers.shape[1]
    of_numbers = (
        _measured(checked_table(table.numbers), names[:width], intercept, rows)
        if has_numbers
        else None
    )
    nothing = np.zeros(0)
    centers, scales, distances = (
        (of_numbers.centers, of_numbers.scales, of_numbers.distances)
        if of_numbers is not None
        else (nothing, nothing, nothing)
    )
    levels = np.zeros(num_levels)
    return Sheet(
        table,
        names,
        bool(intercept),
        np.concatenate([centers, levels]),
        np.concatenate([scales, table.spreads(rows.counts)]),
        np.concatenate([distances, levels]),
        None if of_numbers is None else of_numbers.idle,
        rows,
    )


def sheet_of(X: Any, intercept: bool) -> Sheet:
    """The table checked and measured."""
    names = _names_of(X)
    return _measured(checked_table(X, names), names, intercept, NOTHING)


def _names_of(X: Any) -> tuple[str, ...]:
    return tuple(f"column {str(name)!r}" for name in X.columns) if hasattr(X, "columns") else ()


def _measured(
    values: np.ndarray, names: tuple[str, ...], intercept: bool, terms: RowTerms
) -> Sheet:
    """A block of rows at a time."""
    width, weights = values.shape[1], terms.counts
    num_rows = terms.total(len(values))
    names = names or tuple(f"column {place} (the first is 0)" for place in range(width))
    first = values[0].astype(np.float64) if width else np.zeros(0)
    total, squares, varies = np.zeros(width), np.zeros(width), np.zeros(width, bool)
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # a width that float64 has no room for is refused below
        for rows in blocks(values):
            # from the first row, so that a column far from zero keeps its differences
            away = values[rows] - first
            if weights is None:
                total += away.sum(axis=0)
                squares += np.einsum("ij,ij->j", away, away)
            else:
                total += weights[rows] @ away
                squares += np.einsum("i,ij,ij->j", weights[rows], away, away)
            varies |= (away != 0).any(axis=0)
        means = first + total / num_rows
        variances = np.maximum(squares / num_rows - (total / num_rows) ** 2, 0.0)
    return _sheet(values, names, intercept, means, variances, varies)._replace(rows=terms)


def _sheet(
    values: np.ndarray | StoredColumns,
    names: tuple[str, ...],
    intercept: bool,
    means: np.ndarray,
    variances: np.ndarray,
    varies: np.ndarray,
) -> Sheet:
    """The table with what its columns are like, or a sentence."""
    if not len(names) and not intercept:
        raise ValueError(
            "X must have at least one column with intercept=False, got none; add a predictor"
        )
    # rounded to float32 before they are used, so that what is undone later is what was done
    centers = _single(means if intercept else np.zeros(len(names)))
    scales = _single(np.sqrt(variances + (means - centers) ** 2))
    is_idle = ~varies if intercept else ~varies & (means == 0)
    check_width(
        scales[~is_idle], [name for name, is_out in zip(names, is_idle, strict=True) if not is_out]
    )
    spreads = np.sqrt(variances)
    distances = np.where(
        varies & (spreads > 0), np.abs(means) / np.where(spreads > 0, spreads, 1.0), 0.0
    )
    idle = int(np.argmax(is_idle)) if is_idle.any() else None
    return Sheet(
        values, names, bool(intercept), centers, np.where(is_idle, 1.0, scales), distances, idle
    )


def check_width(scales: np.ndarray, names: list[str]) -> None:
    """Raise where float32 has no room for a column's width, however it is divided."""
    bad = np.flatnonzero(~((scales > NARROWEST) & (scales < WIDEST)))
    if len(bad):
        raise ValueError(
            f"X's {names[bad[0]]} must have a width between {NARROWEST:g} and {WIDEST:g}, got "
            f"{scales[bad[0]]:g}; choose other units"
        )


def checked_table(X: Any, names: tuple[str, ...] = ()) -> np.ndarray:
    """The table as finite numbers, or a sentence."""
    if (
        names and np.asarray(X).dtype.kind == "O"
    ):  # a data frame of several types: say which column is to blame
        for place, name in enumerate(names):
            as_numbers(f"X's {name}", np.asarray(X)[:, place])
    values = np.asarray(as_numbers("X", X))
    if values.dtype.kind not in "biuf":
        values = values.astype(np.float32)
    if values.ndim != 2:
        raise ValueError(
            f"X must have a row per example and a column per predictor, got shape {values.shape}; "
            "reshape it"
        )
    if not len(values):
        raise ValueError("X must have at least one row, got none; give one row per example")
    bad = count_non_finite(values)
    if bad:
        raise ValueError(
            f"X must be finite, got {bad} non-finite value(s); drop or impute those examples first"
        )
    return values


def _single(numbers: np.ndarray) -> np.ndarray:
    """Rounded to float32, kept in float64."""
    with np.errstate(over="ignore"):
        return numbers.astype(np.float32).astype(np.float64)


def _empty(like: np.ndarray, num_rows: int, width: int) -> np.ndarray:
    """A float32 array that JAX need not copy, because it begins where it likes arrays to begin; in
    a file where `like` is.
    """
    if is_in_file(like):
        return scratch((num_rows, width), np.float32)
    raw = np.empty(num_rows * width + ALIGNMENT // 4, np.float32)
    start = -raw.ctypes.data % ALIGNMENT // 4
    return raw[start : start + num_rows * width].reshape(num_rows, width)
