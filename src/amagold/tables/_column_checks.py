"""Columns that are not what they seem: dates, numbers with a text among them, names of rows."""

import re
from typing import Any

import numpy as np

from amagold.core.optional_packages import required
from amagold.tables._formula_columns import FormulaColumns
from amagold.tables._formula_text import ParsedFormula
from amagold.tables._term_codes import INTERCEPT

THOUSANDS = re.compile(r"\d{1,3}([., ']\d{3})*")
MANY_LEVELS = 30  # beyond which a level for most rows is no accident


def check_kinds(formula: ParsedFormula, columns: FormulaColumns) -> None:
    """Raise where a column of the formula must be something else first. What stands in C(...) is
    asked for, whatever it is.
    """
    if formula.outcome in formula.columns:
        raise ValueError(
            f"formula must not explain the outcome {formula.outcome!r} by itself; leave it out on "
            "the right side"
        )
    if INTERCEPT in formula.parts:
        raise ValueError(f"table must not have a column called {INTERCEPT!r}; rename it")
    for part in formula.parts.values():
        for name in part.reads.columns:
            if not columns.is_number(name) and not part.reads.is_factor:
                _check_text(name, columns)


def _check_text(name: str, columns: FormulaColumns) -> None:
    nw = required("narwhals", "tables")
    kind = columns.kind(name)
    if kind.is_temporal():
        raise ValueError(
            f"formula must hold numbers and factors, but {name!r} holds dates or times; make a "
            f"number of it first, such as days or hours, or a factor with C({name})"
        )
    if kind in (nw.Categorical, nw.Enum):
        return
    if kind not in (nw.String, nw.Object):
        raise ValueError(
            f"formula must hold numbers and factors, but {name!r} is of type {kind}; make numbers "
            "or texts of it first"
        )
    codes, found = columns.levels(name)
    numbers = np.array([_is_number(text) for text in found], bool)
    if numbers.sum() > len(found) / 2 and not numbers.all():
        odd = int(np.flatnonzero(~numbers)[0])
        counts = np.bincount(codes, minlength=len(found))[~numbers].sum()
        raise ValueError(
            f"table must have numbers or texts in a column, but {name!r} holds texts such as "
            f"{str(found[odd])!r} among numbers, in {counts:,} of {columns.num_rows:,} rows; mend "
            f"them, or say C({name}) if its values are names"
        )
    if len(found) > max(MANY_LEVELS, columns.num_rows / 2):
        is_comma = all(_is_number(str(text).replace(",", ".")) for text in found)
        remedy = "write decimal points" if is_comma else f"leave it out, or say C({name})"
        if all(THOUSANDS.fullmatch(str(text)) for text in found):
            remedy = "write numbers without signs between thousands"
        raise ValueError(
            f"formula must hold factors whose levels come back, but {name!r} has {len(found):,} "
            f"different texts, such as {str(found[0])!r}, in {columns.num_rows:,} rows; {remedy}"
        )


def _is_number(text: Any) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
