"""The posterior of a formula with random effects."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np

from amagold import models
from amagold.core.scratch import scratch
from amagold.models._merged_rows import MergedRows
from amagold.tables._fixed_model import labels_of
from amagold.tables._formula_columns import FormulaColumns
from amagold.tables._formula_text import ParsedFormula
from amagold.tables._group_checks import check_groups, doubts_about_groups
from amagold.tables._group_priors import has_priors, with_group_priors
from amagold.tables._group_scale import group_labels, grouped_scale
from amagold.tables._group_terms import GroupedRows, GroupTerm, group_term
from amagold.tables._large_table import representative_rows
from amagold.tables._some_rows import parts_of
from amagold.tables._terms import FormulaTerms
from amagold.target import Posterior


def with_groups(
    terms: FormulaTerms,
    frame: Any,
    counts: np.ndarray | None,
    family: str,
    out_of_core: bool,
) -> tuple[FormulaTerms, tuple[GroupedRows, ...]]:
    """The terms with their random effects, and which levels the rows have, which count as often."""
    columns = FormulaColumns(frame)
    groups = tuple(
        group_term(each, columns, _few(each.varying, frame) if out_of_core else columns)
        for each in terms.parsed.groups
    )
    check_groups(groups, terms.terms, family, len(frame))
    codes = [term.codes(columns)[0] for term in groups]
    rows = tuple(
        GroupedRows(code, (), _in_parts(term, frame) if out_of_core else term.varying(columns))
        for code, term in zip(codes, groups, strict=True)
    )
    groups = tuple(
        term.with_moments(each.values, counts) for term, each in zip(groups, rows, strict=True)
    )
    doubts = (*terms.doubts, *doubts_about_groups(groups, terms.terms, codes))
    return dataclasses.replace(terms, groups=groups, doubts=doubts), rows


def grouped_target(
    terms: FormulaTerms,
    found: MergedRows,
    groups: tuple[GroupedRows, ...],
    family: str,
    options: Mapping[str, Any],
    priors: Mapping[str, Any] | None,
) -> Posterior:
    """What is sampled, with the names of the formula and the priors that were given."""
    given = {
        # priors of a group's scales speak of the columns as they are
        term.name: models.Group(
            each.codes, each.values, term.num_levels, False if has_priors(term, priors) else None
        )
        for term, each in zip(terms.groups, groups, strict=True)
    }
    of_rows = {name: values for name, values in found.rows._asdict().items() if values is not None}
    target = models.mixed(
        found.table,
        found.outcomes,
        given,
        family,
        intercept=terms.has_intercept,
        **of_rows,
        **options,
    )
    names, dims = (
        own | of_groups
        for own, of_groups in zip(
            labels_of(terms.terms, "", ()), group_labels(terms.groups), strict=True
        )
    )
    scale = grouped_scale(target.transform, terms.terms, terms.groups)
    named = dataclasses.replace(target, transform=scale, names=names, dims=dims)
    return with_group_priors(named, terms, priors)


def _few(varying: ParsedFormula, frame: Any) -> FormulaColumns:
    """Rows that stand for all, of a table that memory has no room for."""
    return FormulaColumns(frame[representative_rows(varying, frame).tolist()])


def _in_parts(term: GroupTerm, frame: Any) -> np.ndarray | None:
    """What effects multiply, coded a part at a time into a file."""
    found, start = None, 0
    for part in parts_of(frame):
        values = term.varying(FormulaColumns(part))
        if values is None:
            return None
        found = scratch((len(frame), values.shape[1]), values.dtype) if found is None else found
        found[start : start + len(values)] = values
        start += len(values)
    return found
