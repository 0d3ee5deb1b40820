"""A table of predictors as models keep it: checked, standardised where asked, and stored once in float32."""

from collections.abc import Iterator
from typing import NamedTuple

import jax
import numpy as np
from jax.typing import ArrayLike

from amagold.models.columns import Columns
from amagold.target.posterior import count_non_finite

BLOCK = 2**20  # numbers that are converted at once
FAR = 4096.0  # standard deviations between a column's mean and zero, beyond which float32 cannot say where the intercept is
ALIGNMENT = 64  # bytes, at which JAX takes an array over as it is


class Table(NamedTuple):
    """The predictors of all examples, with a column of ones first if there is an intercept."""

    predictors: jax.Array
    columns: Columns | None  # None: as they were given


def table_of(X: ArrayLike, intercept: bool, standardize: bool) -> Table:
    """The table in one fresh array; it is read a block of rows at a time, so that no other copy is made."""
    values = _checked(X)
    num_rows, width = values.shape
    first = int(bool(intercept))
    if not width + first:
        raise ValueError("X must have at least one column with intercept=False, got none; add a predictor")
    columns = _columns(values, bool(intercept)) if standardize else None
    stored = _empty(num_rows, width + first)
    stored[:, :first] = 1.0
    with np.errstate(over="ignore"):  # what float32 cannot hold is refused with the data
        for rows in _blocks(values):
            block = values[rows]
            if columns is not None:
                block = (block - np.asarray(columns.centers or 0.0)) / np.asarray(columns.scales)
            stored[rows, first:] = block
    return Table(jax.device_put(stored), columns)


def _checked(X: ArrayLike) -> np.ndarray:
    values = np.asarray(X)
    if values.dtype.kind not in "biuf":
        try:
            values = values.astype(np.float32)
        except (TypeError, ValueError):
            raise ValueError(f"X must hold numbers, got {values.dtype}; code other columns as numbers first") from None
    if values.ndim != 2:
        raise ValueError(f"X must have a row per example and a column per predictor, got shape {values.shape}; reshape it")
    if not len(values):
        raise ValueError("X must have at least one row, got none; give one row per example")
    bad = count_non_finite(values)
    if bad:
        raise ValueError(f"X must be finite, got {bad} non-finite value(s); drop or impute those examples first")
    return values


def _columns(values: np.ndarray, has_intercept: bool) -> Columns:
    """Each column's mean, and its root mean square distance from it; without an intercept, from zero."""
    num_rows, width = values.shape
    if not width:
        return Columns((), () if has_intercept else None)
    total, least, most = np.zeros(width), values[0], values[0]
    for rows in _blocks(values):
        block = values[rows]
        total += block.sum(axis=0, dtype=np.float64)
        least, most = np.minimum(least, block.min(axis=0)), np.maximum(most, block.max(axis=0))
    # rounded to float32 before they are used, because that is what the coefficients are multiplied by
    centers = (total / num_rows if has_intercept else np.zeros(width)).astype(np.float32).astype(np.float64)
    squares = np.zeros(width)
    for rows in _blocks(values):
        squares += ((values[rows] - centers) ** 2).sum(axis=0)
    scales = np.sqrt(squares / num_rows).astype(np.float32).astype(np.float64)
    is_bad = (least == most) & (has_intercept | (least == 0)) | ~(np.isfinite(scales) & (scales > 0))
    if is_bad.any():
        column = int(np.argmax(is_bad))
        raise ValueError(
            f"X must vary in every column with standardize=True, but column {column} (the first is 0) stays at {float(least[column]):g}; "
            f"drop it{', the intercept stands for it' if has_intercept else ''}"
        )
    distance = np.abs(centers) / scales
    if distance.max() > FAR:
        raise ValueError(
            f"X must have means within {FAR:g} standard deviations of zero, but column {int(np.argmax(distance))} (the first is 0) has "
            f"{distance.max():.0f}: coefficients are on your scale, and float32 would blur the intercept; subtract a round number from it"
        )
    return Columns(tuple(scales.tolist()), tuple(centers.tolist()) if has_intercept else None)


def _blocks(values: np.ndarray) -> Iterator[slice]:
    step = max(1, BLOCK // max(1, values.shape[1]))
    return (slice(start, start + step) for start in range(0, len(values), step))


def _empty(num_rows: int, width: int) -> np.ndarray:
    """A float32 array that JAX need not copy, because it begins where it likes arrays to begin."""
    raw = np.empty(num_rows * width + ALIGNMENT // 4, np.float32)
    start = -raw.ctypes.data % ALIGNMENT // 4
    return raw[start : start + num_rows * width].reshape(num_rows, width)
