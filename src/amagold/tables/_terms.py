"""What a formula means for a table: the names of its coefficients, and how rows are coded."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from amagold.models._coded_rows import CodedTable
from amagold.tables._column_checks import check_kinds
from amagold.tables._data_warnings import doubts_about
from amagold.tables._formula_columns import FormulaColumns
from amagold.tables._formula_text import ParsedFormula
from amagold.tables._group_terms import GroupedRows, GroupTerm
from amagold.tables._term_checks import check_terms
from amagold.tables._term_codes import (
    INTERCEPT,
    Term,
    check_number_of_terms,
    coded_terms,
    specification,
)


@dataclass(frozen=True)
class FormulaTerms:
    """What a formula means for one table, levels and transformations included."""

    parsed: ParsedFormula
    terms: tuple[Term, ...]
    spec: Any  # formulaic's, with the state that new data are treated alike by
    doubts: tuple[str, ...] = ()  # sentences about what the table cannot say
    groups: tuple[GroupTerm, ...] = ()  # random effects

    @property
    def formula(self) -> str:
        return self.parsed.text

    @property
    def has_intercept(self) -> bool:
        return any(term.name == INTERCEPT for term in self.terms)

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the table, that the right side reads."""
        return self.parsed.all_columns

    @property
    def fixed_columns(self) -> tuple[str, ...]:
        """The same without random effects."""
        return self.parsed.columns

    @property
    def varied_columns(self) -> tuple[str, ...]:
        """Whose effects on the outcome can be told: all but those that name groups alone."""
        varying = (name for group in self.parsed.groups for name in group.varying.columns)
        return tuple(sorted({*self.fixed_columns, *varying}))

    def group_rows(self, frame: Any) -> tuple[GroupedRows, ...]:
        """The levels and effects of a table that has these columns."""
        columns = FormulaColumns(frame)
        return tuple(term.rows(columns) for term in self.groups)

    def coded(self, frame: Any) -> CodedTable:
        """The fixed predictors of a table that has these columns."""
        return coded_terms(self.spec, self.parsed, FormulaColumns(frame))[0]


def terms_of(
    formula: ParsedFormula,
    frame: Any,
    classes: np.ndarray | None = None,
    trials: np.ndarray | None = None,
) -> tuple[FormulaTerms, CodedTable]:
    """What the right side means for this table; `classes` are outcomes of 0 and 1, or successes
    of trials.
    """
    columns = FormulaColumns(frame)
    check_kinds(formula, columns)
    check_number_of_terms(formula, columns)
    spec = specification(formula, columns)
    coded, terms = coded_terms(spec, formula, columns)
    del columns  # as large as what was made of them
    check_terms(spec, terms, coded)
    doubts = doubts_about(coded, terms, classes, trials)
    return FormulaTerms(formula, terms, spec, doubts), coded
