"""Terms that say nothing, or nothing finite."""

from typing import Any

import numpy as np

from amagold.core.arrays import blocks
from amagold.models._coded_rows import CodedTable
from amagold.tables._term_codes import INTERCEPT, Term


def check_terms(spec: Any, terms: tuple[Term, ...], coded: CodedTable) -> None:
    """Raise where a term cannot be estimated at all, by its name."""
    if not terms:
        raise ValueError("formula must have at least one term on the right side, got none")
    for encoded in spec.structure:
        if not encoded.columns:
            raise ValueError(
                f"formula must hold factors of several levels, but {str(encoded.term)!r} has one "
                "level in all rows; leave it out"
            )
    _check_numbers(coded, any(term.name == INTERCEPT for term in terms))
    for place, times in zip(coded.multiplied_by, coded.sizes, strict=True):
        if place is not None and not np.isfinite(coded.multipliers[:, place]).all():
            start = coded.numbers.shape[1] + sum(coded.sizes[: coded.multiplied_by.index(place)])
            raise ValueError(_not_finite(coded.names[start : start + times][0], None))


def _check_numbers(coded: CodedTable, has_intercept: bool) -> None:
    width = coded.numbers.shape[1]
    low, high = np.full(width, np.inf), np.full(width, -np.inf)
    bad = np.zeros(width, np.int64)
    for rows in blocks(coded.numbers):
        block = coded.numbers[rows]
        is_finite = np.isfinite(block)
        bad += (~is_finite).sum(axis=0)
        low = np.minimum(low, np.where(is_finite, block, np.inf).min(axis=0, initial=np.inf))
        high = np.maximum(high, np.where(is_finite, block, -np.inf).max(axis=0, initial=-np.inf))
    for name, number in zip(coded.names, bad, strict=False):
        if number:
            raise ValueError(_not_finite(name, int(number)))
    # without an intercept one constant stands for it
    for name, at, to in zip(coded.names, low, high, strict=False):
        if at == to and (has_intercept or at == 0.0):
            raise ValueError(
                f"formula must hold terms that vary, but {name!r} is {at:g} in all rows; leave it "
                "out"
            )


def _not_finite(name: str, number: int | None) -> str:
    where = "" if number is None else f" in {number:,} row(s)"
    return (
        f"formula must give finite numbers, but {name!r} is infinite or none{where}; mend or drop "
        "those rows"
    )
