"""The outcome of a regression, from a column."""

from typing import Any

import numpy as np

from amagold.tables._formula_columns import FormulaColumns

TWO_CLASSES = ("logistic", "probit")


def outcome_of(name: str, frame: Any, family: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """One number for each row, and the classes that stand for 0 and 1 where the column holds
    texts or booleans.
    """
    columns = FormulaColumns(frame)
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
        if not is_boolean:
            return values, ()
        return _two_classes(name, values, ["False", "True"], family)
    codes, found = columns.levels(name)
    return _two_classes(name, codes.astype(np.float64), list(map(str, found)), family)


def _two_classes(
    name: str, codes: np.ndarray, found: list[str], family: str
) -> tuple[np.ndarray, tuple[str, ...]]:
    if family not in TWO_CLASSES or len(found) != 2:
        several = ", ".join(map(repr, found[:5]))
        wanted = "two classes" if family in TWO_CLASSES else "numbers"
        raise ValueError(f"outcome {name!r} must hold {wanted} for {family}, got {several}")
    return codes, tuple(found)
