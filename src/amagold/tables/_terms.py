"""From a formula and a table to numbers and codes, and the names of their coefficients.

formulaic says what a formula means; its sparse columns are read back into codes, so that a factor
is never expanded into a matrix.
"""

import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from amagold.core.optional_packages import required
from amagold.models._coded_rows import CodedTable
from amagold.tables._formula_check import check_expression

INTERCEPT = "Intercept"
MOST_NUMBERS = 4096  # columns that are not codes, each of which is kept as it is


class Term(NamedTuple):
    """A term of the formula, and which coefficients are its."""

    name: str
    levels: tuple[str, ...] | None  # None: it is one number
    places: tuple[int, ...]  # in the flat vector of all coefficients


@dataclass(frozen=True)
class FormulaTerms:
    """What a formula means for one table, levels and transformations included."""

    formula: str
    terms: tuple[Term, ...]
    spec: Any  # formulaic's, with the state that new data are treated alike by
    has_intercept: bool
    columns: tuple[str, ...]  # of the table, that the right side reads

    def coded(self, frame: Any) -> CodedTable:
        """The predictors of a table that has these columns."""
        return _coded(self.spec, _materialised(self.spec, frame))[0]


class Blocks(NamedTuple):
    """The columns of a sparse matrix, sorted into numbers and codes."""

    numbers: list[np.ndarray]
    codes: list[np.ndarray]
    multipliers: list[np.ndarray]


def split_formula(formula: str) -> tuple[str, Any]:
    """The outcome and the right side."""
    formulaic = required("formulaic", "tables")
    if not isinstance(formula, str) or formula.count("~") != 1:
        raise ValueError(
            f"formula must be a text such as 'late ~ distance + C(month)', got {formula!r}"
        )
    left, right = (side.strip() for side in formula.split("~"))
    if not left:
        raise ValueError("formula must name the outcome before '~', as in 'late ~ distance'")
    if "|" in right:
        raise ValueError(
            "formula must hold fixed terms, but has '|' of a random effect, which is not known "
            "yet; give the groups as a factor"
        )
    try:
        parsed = formulaic.Formula(right or "1")
    except Exception as reason:
        why = str(reason).splitlines()[0]
        raise ValueError(
            f"formula must be one that formulaic knows, but {right!r}: {why}"
        ) from None
    for term in parsed:
        for factor in term.factors:
            check_expression(str(factor.expr))
    return left, parsed


def terms_of(formula: str, right: Any, frame: Any) -> tuple[FormulaTerms, CodedTable]:
    """What the right side means for this table."""
    needed = sorted(str(name) for name in right.required_variables)
    _check_columns(needed, frame)
    matrix = _materialised(right, frame)
    spec = matrix.model_spec
    coded, terms = _coded(spec, matrix)
    has_intercept = any(term.name == INTERCEPT for term in terms)
    return FormulaTerms(formula, terms, spec, has_intercept, tuple(needed)), coded


def _check_columns(needed: list[str], frame: Any) -> None:
    missing = [name for name in needed if name not in frame.columns]
    if missing:
        known = ", ".join(map(repr, frame.columns[:20]))
        raise ValueError(
            f"formula must speak of columns of the table, but {missing[0]!r} is none: it has "
            f"{known}"
        )


def _materialised(right: Any, frame: Any) -> Any:
    """formulaic's sparse matrix of a formula, or of a specification that knows its levels."""
    formulaic = required("formulaic", "tables")
    pandas = frame.to_pandas()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return formulaic.model_matrix(
                right, pandas, context={}, output="sparse", na_action="raise"
            )
        except Exception as reason:
            why = str(reason).splitlines()[0] if str(reason) else type(reason).__name__
            raise ValueError(f"formula could not be evaluated on this table: {why}") from None


def _coded(spec: Any, matrix: Any) -> tuple[CodedTable, tuple[Term, ...]]:
    """The matrix as numbers and codes: term by term, a block in which every row has at most one
    number is a factor.
    """
    sparse = matrix.__wrapped__.tocsc() if hasattr(matrix, "__wrapped__") else matrix.tocsc()
    num_rows = sparse.shape[0]
    found, names = Blocks([], [], []), list(spec.column_names)
    sizes: list[int] = []
    multiplied_by: list[int | None] = []
    as_numbers: list[tuple[str, list[str]]] = []  # terms, and the names of their columns
    as_codes: list[tuple[str, list[str]]] = []
    has_intercept = False
    for term, place in spec.term_slices.items():
        name, block = str(term), sparse[:, place]
        columns = names[place]
        if name == "1":
            has_intercept = True
            continue
        if block.shape[1] == 0:
            continue
        per_row = np.bincount(block.indices, minlength=num_rows)
        if block.shape[1] > 1 and per_row.max(initial=0) <= 1:
            code = np.full(num_rows, -1, np.int32)
            code[block.indices] = np.repeat(np.arange(block.shape[1]), np.diff(block.indptr))
            found.codes.append(code)
            sizes.append(block.shape[1])
            is_plain = bool((block.data == 1.0).all())
            multiplied_by.append(None if is_plain else len(found.multipliers))
            if not is_plain:
                times = np.zeros(num_rows, np.float32)
                times[block.indices] = block.data
                found.multipliers.append(times)
            as_codes.append((name, columns))
            continue
        if len(found.numbers) + block.shape[1] > MOST_NUMBERS:
            raise ValueError(
                f"formula must make at most {MOST_NUMBERS:,} columns beside factors, but {name!r} "
                "brings more"
            )
        found.numbers.extend(
            np.asarray(block[:, [at]].todense())[:, 0] for at in range(block.shape[1])
        )
        as_numbers.append((name, columns))
    table = CodedTable(
        _stacked(found.numbers, num_rows, np.float64),
        _stacked(found.codes, num_rows, np.int32),
        _stacked(found.multipliers, num_rows, np.float32),
        tuple(column for _, columns in [*as_numbers, *as_codes] for column in columns),
        tuple(sizes),
        tuple(multiplied_by),
    )
    terms = [Term(INTERCEPT, None, (0,))] if has_intercept else []
    start = int(has_intercept)
    for name, columns in [*as_numbers, *as_codes]:
        places = tuple(range(start, start + len(columns)))
        levels = None if len(columns) == 1 and columns[0] == name else tuple(map(_level, columns))
        terms.append(Term(name, levels, places))
        start += len(columns)
    order = {str(term): at for at, term in enumerate(spec.term_slices)}
    order[INTERCEPT] = -1
    return table, tuple(sorted(terms, key=lambda term: order[term.name]))


def _level(column: str) -> str:
    """`3` of `C(month)[T.3]`; interactions keep all of their name."""
    if column.count("[") == 1 and column.endswith("]"):
        inside = column[column.index("[") + 1 : -1]
        return inside[2:] if inside[:2] in ("T.", "S.") else inside
    return column


def _stacked(columns: list[np.ndarray], num_rows: int, dtype: Any) -> np.ndarray:
    if not columns:
        return np.zeros((num_rows, 0), dtype)
    return np.stack(columns, axis=1).astype(dtype, copy=False)
