"""The outcome of a regression, from a column."""

from typing import Any

import numpy as np

from amagold.models._merged_rows import TWO_CLASSES
from amagold.tables._formula_columns import FormulaColumns

SEVERAL_CLASSES = ("softmax", "ordinal")
MOST_CLASSES = 100


def outcome_of(name: str, frame: Any, family: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """One number for each row, and the classes that stand for 0 and 1 where the column holds
    texts or booleans.
    """
    columns = FormulaColumns(frame)
    if family in SEVERAL_CLASSES:
        return _several_classes(name, columns)
    if columns.kind(name).is_temporal():
        raise ValueError(f"outcome {name!r} must hold numbers or classes, but holds dates or times")
    if columns.is_number(name):
        values = columns.values(name)
        is_boolean = values.dtype == bool
        values = values.astype(np.float64)
        if not np.isfinite(values).all():
            raise ValueError(f"outcome {name!r} must be finite; drop or mend those rows first")
        if (values == values[0]).all():
            raise ValueError(
                f"outcome {name!r} must vary, but it is {values[0]:g} in all rows, from which "
                "nothing can be learned"
            )
        if family in TWO_CLASSES and ((values == 1.0) | (values == -1.0)).all():
            values = (values > 0.0).astype(np.float64)  # -1 and 1 are two classes too
        if not is_boolean:
            return values, ()
        return _two_classes(name, values, ["False", "True"], family)
    codes, found = columns.levels(name)
    return _two_classes(name, codes.astype(np.float64), list(map(str, found)), family)


def _several_classes(name: str, columns: FormulaColumns) -> tuple[np.ndarray, tuple[str, ...]]:
    """The number of each row's class, in the order of numbers, texts or categories."""
    if columns.is_number(name):
        levels, codes = np.unique(columns.values(name), return_inverse=True)
        found = [_number_words(level) for level in levels.tolist()]
    else:
        codes, found = columns.levels(name)
        seen, codes = np.unique(codes, return_inverse=True)
        found = [str(found[place]) for place in seen]
    if not 2 <= len(found) <= MOST_CLASSES:
        raise ValueError(
            f"outcome {name!r} must hold between 2 and {MOST_CLASSES} classes, got {len(found):,}"
        )
    return codes.astype(np.float64), tuple(map(str, found))


def _number_words(level: float | int) -> str:
    """2 for 2.0, and no two numbers alike."""
    return f"{level:g}" if float(f"{level:g}") == level else repr(level)


def _two_classes(
    name: str, codes: np.ndarray, found: list[str], family: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    if family not in TWO_CLASSES or len(found) != 2:
        several = ", ".join(map(repr, found[:5]))
        wanted = "two classes" if family in TWO_CLASSES else "numbers"
        raise ValueError(f"outcome {name!r} must hold {wanted} for {family}, got {several}")
    return codes, tuple(found)
