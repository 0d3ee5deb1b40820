"""The outcome of a regression, from a column."""

from typing import Any

import numpy as np


def outcome_of(name: str, frame: Any, family: str) -> tuple[np.ndarray, tuple[str, ...]]:
    """One number for each row, and the classes that stand for 0 and 1 where the column holds
    texts or booleans.
    """
    column = frame[name]
    if column.dtype.is_numeric():
        values = column.to_numpy().astype(np.float64)
        if not np.isfinite(values).all():
            raise ValueError(f"outcome {name!r} must be finite; drop or mend those rows first")
        return values, ()
    texts = np.asarray([str(value) for value in column.to_list()])
    found, codes = np.unique(texts, return_inverse=True)
    if family not in ("logistic", "probit") or len(found) != 2:
        several = ", ".join(map(repr, found[:5].tolist()))
        wanted = "two classes" if family in ("logistic", "probit") else "numbers"
        raise ValueError(f"outcome {name!r} must hold {wanted} for {family}, got {several}")
    return codes.astype(np.float64), tuple(map(str, found))
