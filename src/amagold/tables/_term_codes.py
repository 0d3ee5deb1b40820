"""The columns of a formula's terms, as numbers and codes.

A term of factors has few different rows, however many the table has: formulaic is asked about
those, and its answer is looked up for the others. So nothing as large as the table is made but the
codes.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np

from amagold.core.arrays import blocks
from amagold.models._coded_rows import CodedTable
from amagold.tables._formula_columns import FormulaColumns, code_type
from amagold.tables._formula_text import FormulaPart, ParsedFormula

INTERCEPT = "Intercept"
MOST_NUMBERS = 4096  # columns that are not codes, each of which is kept as it is


class Term(NamedTuple):
    """A term of the formula, and which coefficients are its."""

    name: str
    levels: tuple[str, ...] | None  # None: it is one number
    places: tuple[int, ...]  # in the flat vector of all coefficients


class Block(NamedTuple):
    """The columns of one term: either numbers, or codes with their multiplier."""

    numbers: list[np.ndarray]
    code: np.ndarray | None = None
    multiplier: np.ndarray | None = None


def check_number_of_terms(formula: ParsedFormula, columns: FormulaColumns) -> None:
    """Raise where there are too many numbers, before formulaic takes its time for them."""
    numbers = [term for term in formula.right if not _factors_of(term, formula, columns)]
    if len(numbers) > MOST_NUMBERS + 1:  # one is the intercept
        raise ValueError(
            f"formula must make at most {MOST_NUMBERS:,} columns beside factors, got "
            f"{len(numbers):,} terms; choose among them"
        )


def specification(formula: ParsedFormula, columns: FormulaColumns) -> Any:
    """formulaic's specification of the formula for this table: levels, states, names of columns."""
    from formulaic import SimpleFormula
    from formulaic.materializers import NAAction
    from formulaic.model_spec import ModelSpec
    from formulaic.parser.types import Term as FormulaicTerm

    parts = formula.parts.values()
    factors = [part for part in parts if has_levels(part, columns)]
    stateful = [part for part in parts if part.reads.is_stateful]
    named = _read_by(factors)
    spec = ModelSpec(formula=formula.right, output="sparse", na_action=NAAction.RAISE)
    if any(part in factors for part in stateful):
        # a state that depends on the order of all rows
        return _matrix(spec, columns.frame(list(formula.columns), named=named)).model_spec
    state: dict[str, Any] = {}
    for factor in {factor for term in formula.right for factor in term.factors}:
        part = formula.parts[str(factor.expr)]
        if part in stateful:
            alone: Any = SimpleFormula([FormulaicTerm([factor])])
            alone = ModelSpec(alone, output="numpy", na_action=NAAction.RAISE)
            matrix = _matrix(alone, columns.frame(list(part.reads.columns)))
            state |= matrix.model_spec.transform_state
    # rows in which every level is met once
    rows = [columns.distinct(part.reads.columns).rows for part in factors]
    few = np.unique(np.concatenate([np.zeros(1, np.int64), *rows]))
    spec = spec.update(transform_state=state)
    return _matrix(spec, columns.frame(list(formula.columns), few, named)).model_spec


def coded_terms(
    spec: Any, formula: ParsedFormula, columns: FormulaColumns
) -> tuple[CodedTable, tuple[Term, ...]]:
    """The predictors of a table, and the terms in the formula's order."""
    found: list[tuple[str, list[str], Block]] = []
    has_intercept, num_numbers = False, 0
    for encoded in spec.structure:
        name = str(encoded.term)
        if all(formula.parts[str(factor.expr)].is_constant for factor in encoded.term.factors):
            has_intercept = True
        elif encoded.columns:
            if num_numbers + len(encoded.columns) > MOST_NUMBERS and not _is_coded(
                encoded.term, formula, columns
            ):
                raise ValueError(
                    f"formula must make at most {MOST_NUMBERS:,} columns beside factors, but "
                    f"{name!r} brings more; choose among them"
                )
            block = _block(spec, encoded.term, formula, columns)
            num_numbers += len(block.numbers)
            found.append((name, list(encoded.columns), block))
    as_numbers = [one for one in found if one[2].code is None]
    as_codes = [one for one in found if one[2].code is not None]
    terms = [Term(INTERCEPT, None, (0,))] if has_intercept else []
    start = int(has_intercept)
    for name, names, _ in [*as_numbers, *as_codes]:
        places = tuple(range(start, start + len(names)))
        is_one = len(names) == 1 and names[0] == name
        terms.append(Term(name, None if is_one else tuple(map(_level, names)), places))
        start += len(names)
    order = {str(encoded.term): at for at, encoded in enumerate(spec.structure)}
    order[INTERCEPT] = -1
    table = _table([*as_numbers, *as_codes], columns.num_rows)
    return table, tuple(sorted(terms, key=lambda term: order[term.name]))


def _table(found: list[tuple[str, list[str], Block]], num_rows: int) -> CodedTable:
    every = [block for _, _, block in found]
    codes = [block for block in every if block.code is not None]
    times = [block.multiplier for block in codes if block.multiplier is not None]
    places = iter(range(len(times)))
    return CodedTable(
        _stacked([column for block in every for column in block.numbers], num_rows, np.float64),
        _stacked([block.code for block in codes], num_rows, _common_type(codes)),
        _stacked(times, num_rows, np.float64),
        tuple(name for _, names, _ in found for name in names),
        tuple(len(names) for _, names, block in found if block.code is not None),
        tuple(None if block.multiplier is None else next(places) for block in codes),
    )


def _common_type(codes: list[Block]) -> Any:
    return np.result_type(np.int8, *(block.code for block in codes if block.code is not None))


def _block(spec: Any, term: Any, formula: ParsedFormula, columns: FormulaColumns) -> Block:
    """The columns of one term for all rows."""
    parts = [formula.parts[str(factor.expr)] for factor in term.factors]
    factors = _factors_of(term, formula, columns)
    others = [part for part in parts if part not in factors and not part.is_constant]
    if len(parts) == 1 and parts[0] in others and parts[0].is_column:
        return Block([np.asarray(columns.values(parts[0].name))])
    own = spec.subset([term])
    if not factors:
        names = _read_by(parts)
        dense = np.asarray(_matrix(own.update(output="numpy"), columns.frame(names)), np.float64)
        return Block(list(dense.T))
    if not _is_coded(term, formula, columns):
        frame = columns.frame(_read_by(parts), named=_read_by(factors))
        matrix = _matrix(own, frame).__wrapped__.tocsc()
        return _looked_up(matrix, slice(None), None)
    reads = _read_by(factors)
    places, rows = columns.distinct(tuple(reads))
    few = columns.frame(reads, rows, reads)
    times = None
    for part in others:
        few[part.name] = 1.0
        values = np.asarray(columns.values(part.name), np.float64)
        times = values if times is None else times * values
    return _looked_up(_matrix(own, few).__wrapped__.tocsc(), places, times)


def _is_coded(term: Any, formula: ParsedFormula, columns: FormulaColumns) -> bool:
    """Whether the term is one of factors without a state, times columns of numbers that none of
    the factors reads.
    """
    parts = [formula.parts[str(factor.expr)] for factor in term.factors]
    factors = _factors_of(term, formula, columns)
    read = _read_by(factors)
    others = [part for part in parts if part not in factors and not part.is_constant]
    return (
        bool(factors)
        and not any(part.reads.is_stateful for part in factors)
        and all(part.is_column and part.name not in read for part in others)
    )


def _looked_up(matrix: Any, places: Any, times: np.ndarray | None) -> Block:
    """The rows of a sparse matrix at these places, times a number: codes, where every row has at
    most one entry.
    """
    num_rows, width = matrix.shape
    per_row = np.bincount(matrix.indices, minlength=num_rows)
    if per_row.max(initial=0) > 1:
        dense = matrix.toarray()[places]
        return Block(list((dense if times is None else dense * times[:, None]).T))
    code = np.full(num_rows, -1, code_type(width))
    value = np.ones(num_rows)
    code[matrix.indices] = np.repeat(np.arange(width, dtype=code.dtype), np.diff(matrix.indptr))
    value[matrix.indices] = matrix.data
    multiplier = None if (value == 1.0).all() else value[places]
    if times is not None:
        multiplier = times if multiplier is None else multiplier * times
    return Block([], code[places], multiplier)


def _read_by(parts: list[FormulaPart]) -> list[str]:
    """The columns of these parts, each once."""
    return list(dict.fromkeys(name for part in parts for name in part.reads.columns))


def _factors_of(term: Any, formula: ParsedFormula, columns: FormulaColumns) -> list[FormulaPart]:
    """The parts of a term that have levels."""
    parts = [formula.parts[str(factor.expr)] for factor in term.factors]
    return [part for part in parts if has_levels(part, columns)]


def has_levels(part: FormulaPart, columns: FormulaColumns) -> bool:
    """Whether it is a factor."""
    return part.reads.is_factor or not all(map(columns.is_number, part.reads.columns))


def _matrix(spec: Any, frame: Any) -> Any:
    """formulaic's matrix, or its reason in one line."""
    from formulaic.errors import DataMismatchWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        # levels that are not known would be taken for the first one
        warnings.simplefilter("error", DataMismatchWarning)
        try:
            return spec.get_model_matrix(frame, context={})
        except Exception as reason:
            why = str(reason).splitlines()[0] if str(reason) else type(reason).__name__
            if "null values" in why:
                why = f"{why.split('`')[1]!r} is not a number in some rows; mend or drop them"
            raise ValueError(f"formula could not be evaluated on this table: {why}") from None


def _level(column: str) -> str:
    """`3` of `C(month)[T.3]`; interactions keep all of their name."""
    if column.count("[") == 1 and column.endswith("]"):
        inside = column[column.index("[") + 1 : -1]
        return inside[2:] if inside[:2] in ("T.", "S.") else inside
    return column


def _stacked(columns: list[Any], num_rows: int, dtype: Any) -> np.ndarray:
    found = np.empty((num_rows, len(columns)), dtype)
    for rows in blocks(found):
        for place, column in enumerate(columns):
            found[rows, place] = column[rows]
    return found
