"""Arrays as users have them: taken as numbers, or refused where numbers would be made up or
lost.
"""

from collections.abc import Iterator
from numbers import Number
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

BLOCK = 2**17  # numbers that are looked at together: what the processor's cache holds
COARSE = 1e-3  # of a column's standard deviation: rounding beyond this is refused
MISSING = {"NoneType", "NAType", "NaTType"}  # None, and pandas' own


def as_numbers(name: str, value: Any) -> Any:
    """The value as an array of numbers; raises one sentence where it has none, or hides some of
    them.

    Arrays of JAX, and of types that JAX has beside NumPy's, stay as they are.
    """
    if isinstance(value, jax.Array):
        return value
    if np.ma.is_masked(value):
        hidden = int(np.sum(np.ma.getmaskarray(value)))
        raise ValueError(
            f"{name} must have no masked values, got {hidden}; drop or impute them first"
        )
    try:
        array = np.asarray(value)
    except ValueError as reason:  # lists of several lengths
        raise ValueError(
            f"{name} must be an array of numbers ({reason}); give rows of one length"
        ) from None
    if array.dtype.kind == "O":
        return _from_objects(name, array)
    if array.dtype.kind in "mM":
        remedy = (
            "turn them into numbers first, for example days since a date: (x - x.min()) / "
            "np.timedelta64(1, 'D')"
        )
        raise ValueError(f"{name} must hold numbers, got times ({array.dtype}); {remedy}")
    if not (
        jnp.issubdtype(array.dtype, jnp.number)
        or array.dtype == bool
        or jnp.issubdtype(array.dtype, jax.dtypes.extended)
    ):
        raise ValueError(f"{name} must hold numbers, got {array.dtype}; code it as numbers first")
    return array


def _from_objects(name: str, array: np.ndarray) -> np.ndarray:
    """A column of a data frame may hold plain numbers as objects."""
    kinds = {type(entry) for entry in array.ravel().tolist()}
    strange = sorted(kind.__name__ for kind in kinds if not issubclass(kind, Number))
    if MISSING & set(strange):
        found = sum(type(entry).__name__ in MISSING for entry in array.ravel().tolist())
        raise ValueError(
            f"{name} must have no missing values, got {found}; drop or impute them first"
        )
    if strange:
        raise ValueError(
            f"{name} must hold numbers, got {', '.join(strange[:3])}; code it as numbers first"
        )
    return array.astype(np.float64)


def check_fits(name: str, array: Any) -> None:
    """Raise where JAX would keep fewer bits than the values need: whole numbers cut off, a far
    column rounded to steps.
    """
    if isinstance(array, jax.Array):
        return
    kept = jax.dtypes.canonicalize_dtype(array.dtype)
    if kept == array.dtype or not array.size:
        return
    wider = "or let JAX keep 64 bits: jax.config.update('jax_enable_x64', True)"
    if array.dtype.kind in "iu":
        least, most = int(array.min()), int(array.max())
        if least < np.iinfo(kept).min or most > np.iinfo(kept).max:
            worst = most if most > np.iinfo(kept).max else least
            raise ValueError(
                f"{name} must fit in {kept}, got {worst}; subtract a round number or count in "
                f"larger units, {wider}"
            )
    elif array.dtype == np.float64:
        column = _too_coarse(array)
        if column is not None:
            where = f"{name}[..., {', '.join(map(str, column))}]" if column else name
            values = array[(slice(None), *column)]
            raise ValueError(
                f"{where} must be told apart in {kept}, but {values[0]:.10g} and its neighbours "
                "lie too far from zero (or too near) for "
                f"their differences; subtract a round number and choose other units, {wider}"
            )


def _too_coarse(array: np.ndarray) -> tuple[int, ...] | None:
    """The first column whose values float32 rounds by more than a small part of their standard
    deviation.
    """
    flat = array.reshape(len(array), -1)
    spread, largest = spreads(flat), np.zeros(flat.shape[1])
    for rows in blocks(flat):
        largest = np.maximum(largest, np.abs(flat[rows]).max(axis=0))
    single = np.finfo(np.float32)
    # the last place of the largest value, or of the smallest that float32 has
    step = np.maximum(single.eps * np.minimum(largest, single.max) / 2.0, single.smallest_subnormal)
    bad = np.flatnonzero((spread > 0) & (step > COARSE * spread) | (largest > single.max))
    return (
        None
        if not len(bad)
        else tuple(int(place) for place in np.unravel_index(bad[0], array.shape[1:]))
    )


def spreads(table: np.ndarray) -> np.ndarray:
    """The standard deviation of every column, in float64, a block of rows at a time."""
    first = table[0].astype(np.float64)
    total, squares = np.zeros(table.shape[1]), np.zeros(table.shape[1])
    with np.errstate(
        over="ignore", invalid="ignore"
    ):  # infinite, or not a number, where float64 has no room for the squares
        for rows in blocks(table):
            away = table[rows] - first
            total += away.sum(axis=0)
            squares += np.einsum("ij,ij->j", away, away)
        mean = total / len(table)
        return np.sqrt(np.maximum(squares / len(table) - mean**2, 0.0))


def blocks(table: np.ndarray) -> Iterator[slice]:
    """Rows that are looked at together."""
    step = max(1, BLOCK // max(1, table.shape[1]))
    return (slice(start, start + step) for start in range(0, len(table), step))


def count_non_finite(array: Any) -> int:
    """How many values are NaN or infinite, looked at in blocks of rows so that no copy of the whole
    is made.
    """
    values = np.asarray(array)
    if not np.issubdtype(values.dtype, np.floating):
        return 0
    block = max(1, 2**22 // max(1, values[:1].size))
    return sum(
        int(np.sum(~np.isfinite(values[start : start + block])))
        for start in range(0, len(values), block)
    )
