"""Outcomes of a table, checked without sorting them."""

from typing import Any

import numpy as np
from jax.typing import ArrayLike

from amagold.core import checks
from amagold.core.arrays import as_numbers
from amagold.models._row_terms import NOTHING, RowTerms
from amagold.models._stored_table import StoredOutcome, as_counts, as_labels, signs
from amagold.models._table import Sheet

MOST_CLASSES = 1_000  # that are believed of a column on disk, which is not searched for gaps


def two_classes(
    y: ArrayLike | StoredOutcome, num_rows: int, rows: RowTerms = NOTHING
) -> tuple[np.ndarray | StoredOutcome, float]:
    """-1 or 1 for each example, from 0 and 1, -1 and 1, or booleans; and the share of ones."""
    if isinstance(y, StoredOutcome):
        lowest, highest = y.lowest, y.highest
        is_coded = y.is_whole and highest <= 1 and (lowest >= 0 or lowest == -1)
        # -1, 0 and 1 together show in the mean square, which is one for -1 and 1 alone
        is_two = lowest >= 0 or abs(y.deviation**2 + y.mean**2 - 1.0) < 1e-9
        if not (is_coded and is_two):
            raise ValueError(
                f"outcome must hold 0 and 1 (or -1 and 1), but {y.column.name!r} holds "
                f"{'' if y.is_whole else 'other '}numbers from {lowest:g} to {highest:g}; code it "
                "as two classes"
            )
        share = y.mean if lowest >= 0 else (y.mean + 1.0) / 2.0
        return y._replace(convert=signs), share
    values = _one_for_each(y, num_rows)
    if not _is_number(values) or not (
        np.all((values == 0) | (values == 1)) or np.all((values == -1) | (values == 1))
    ):
        raise ValueError(
            f"y must hold 0 and 1 (or -1 and 1), got {_some(values)}; code the outcome as two "
            "classes"
        )
    found = np.where(values > 0, np.float32(1.0), np.float32(-1.0))
    return found, rows.mean(found > 0)


def classes(
    y: ArrayLike | StoredOutcome, num_rows: int, num_classes: int | None
) -> tuple[np.ndarray | StoredOutcome, int]:
    """The class of each example, a whole number from 0, and how many classes there are: every one
    is seen, unless `num_classes` says, or the data are on disk.
    """
    if isinstance(y, StoredOutcome):
        _check_whole(y, "classes as whole numbers from 0", "number the classes")
        found = max(2, int(y.highest) + 1)
        if num_classes is None and found > MOST_CLASSES:
            raise ValueError(
                f"outcome must hold classes, but {y.column.name!r} goes to {found - 1:,}; give "
                "num_classes if it does"
            )
        chosen = found if num_classes is None else num_classes
        return y._replace(convert=as_labels), _checked_number(chosen, found)
    values = _one_for_each(y, num_rows)
    if not _is_whole(values) or values.min() < 0:
        raise ValueError(
            f"y must hold classes as whole numbers from 0, got {_some(values)}; number the classes"
        )
    found = int(values.max()) + 1
    if num_classes is None:
        held = np.unique(values).astype(np.int64)
        if len(held) < found and len(held) > 1:
            missing = next(label for label, one in enumerate([*held.tolist(), -1]) if label != one)
            several = f"{held[:5].tolist()}"[:-1] + (", ...]" if len(held) > 5 else "]")
            remedy = (
                "number them with np.unique(y, return_inverse=True)[1], or give "
                f"num_classes={found}"
            )
            raise ValueError(
                f"y must hold every class from 0 to {found - 1}, but no {missing} is among its "
                f"{several}; {remedy}"
            )
        num_classes = len(held)
    return values.astype(np.int32), _checked_number(num_classes, found)


def _checked_number(num_classes: int, found: int) -> int:
    checks.whole_number(
        "num_classes", num_classes, at_least=2, remedy="give how many classes there are"
    )
    if found > num_classes:
        raise ValueError(
            f"num_classes must be at least {found}, because y holds the class {found - 1}, got "
            f"{num_classes}; raise it"
        )
    return int(num_classes)


def counts(
    y: ArrayLike | StoredOutcome, num_rows: int, rows: RowTerms = NOTHING
) -> tuple[np.ndarray | StoredOutcome, float]:
    """How often something was seen, for each example; and the mean."""
    if isinstance(y, StoredOutcome):
        _check_whole(y, "counts, whole numbers from 0", "models.linear takes other numbers")
        return y._replace(convert=as_counts), y.mean
    values = _one_for_each(y, num_rows)
    if not _is_whole(values) or values.min() < 0:
        raise ValueError(
            f"y must hold counts, whole numbers from 0, got {_some(values)}; models.linear takes "
            "other numbers"
        )
    events = values.astype(np.float32)
    return events, rows.mean(events.astype(np.float64))


def successes_of(y: ArrayLike, rows: RowTerms) -> tuple[np.ndarray, float]:
    """How many of each example's trials succeeded; and the share of all."""
    trials = rows.trials
    values = _one_for_each(y, len(trials))
    if not _is_whole(values) or values.min() < 0 or (values > trials).any():
        raise ValueError(
            f"y must hold whole numbers from 0 to the row's trials, got {_some(values)}; give how "
            "many of them succeeded"
        )
    found = values.astype(np.float64)
    return found.astype(np.float32), rows.mean(found / trials)


def _check_whole(y: StoredOutcome, what: str, remedy: str) -> None:
    if not y.is_whole or y.lowest < 0:
        raise ValueError(
            f"outcome must hold {what}, but {y.column.name!r} holds "
            f"{'' if y.is_whole else 'other '}numbers from {y.lowest:g} to {y.highest:g}; {remedy}"
        )


def numbers(y: ArrayLike | StoredOutcome, num_rows: int) -> np.ndarray | StoredOutcome:
    """A finite number for each example, in float64."""
    if isinstance(y, StoredOutcome):
        return y
    values = _one_for_each(y, num_rows)
    if not _is_number(values) or not np.all(np.isfinite(values)):
        raise ValueError(
            f"y must hold finite numbers, got {_some(values)}; drop or impute those examples first"
        )
    return values.astype(np.float64)


def positive_numbers(y: ArrayLike, num_rows: int) -> np.ndarray:
    """A finite number above zero for each example, in float64."""
    values = numbers(y, num_rows)
    assert isinstance(values, np.ndarray)
    if values.min() <= 0.0:
        raise ValueError(
            f"y must hold numbers above zero, got {values.min():g}; drop those rows, or model "
            "them by models.linear"
        )
    return values


def numbers_beyond(y: ArrayLike | StoredOutcome, sheet: Sheet) -> np.ndarray | StoredOutcome:
    """The same less the offset: y - offset = x . theta + noise."""
    values = numbers(y, sheet.num_rows)
    if sheet.rows.offset is None or isinstance(values, StoredOutcome):
        return values
    return values - sheet.rows.offset


def _one_for_each(y: ArrayLike, num_rows: int) -> np.ndarray:
    is_text = np.asarray(y).dtype.kind in "US" or all(
        isinstance(value, str) for value in np.asarray(y).ravel()[:1].tolist()
    )
    # texts are named with what the model wants instead
    values = np.asarray(y) if is_text else np.asarray(as_numbers("y", y))
    if values.shape != (num_rows,):
        raise ValueError(
            f"y must have one outcome for each of the {num_rows} rows of X, got shape "
            f"{values.shape}; flatten or cut it"
        )
    return values


def _is_number(values: np.ndarray) -> bool:
    return values.dtype.kind in "biuf"


def _is_whole(values: np.ndarray) -> bool:
    return _is_number(values) and (
        values.dtype.kind != "f"
        or bool(np.all(np.isfinite(values)) and np.all(values == np.floor(values)))
    )


def _some(values: np.ndarray) -> list[Any]:
    """A few of the values, the unusual ones first, for a sentence."""
    sample = values[:100_000]
    if values.dtype.kind == "f":
        odd = values[~np.isfinite(values) | (values != np.floor(values)) | (values < 0)]
        sample = odd if len(odd) else sample
    elif values.dtype.kind in "iu":
        odd = values[(values < -1) | (values > 1)]
        sample = odd if len(odd) else sample
    return sorted(
        {
            value if isinstance(value, (int, float)) else str(value)
            for value in sample[:1000].tolist()
        },
        key=str,
    )[:5]
