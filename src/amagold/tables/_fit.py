"""`amagold.fit`: from a table and a formula to draws with names."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from amagold import models
from amagold.priors import TermPrior
from amagold.sampling import sample
from amagold.sampling._advice import warn
from amagold.sampling._run import Run
from amagold.tables._formula_text import ParsedFormula, formula_of_all, parsed_formula
from amagold.tables._missing_values import without_missing
from amagold.tables._new_rows import first_row
from amagold.tables._read_table import read_table
from amagold.tables._table_description import describe_table
from amagold.tables._table_model import TableModel, law_of
from amagold.tables._table_outcome import TWO_CLASSES, outcome_of
from amagold.tables._term_codes import MOST_NUMBERS, Term
from amagold.tables._term_priors import with_priors
from amagold.tables._term_scale import TermScale
from amagold.tables._terms import terms_of

# what the noise's scale is called, where there is one
FAMILIES: dict[str, str | None] = {
    "logistic": None,
    "probit": None,
    "poisson": None,
    "linear": "sigma",
    "robust": "sigma",
}


def fit(
    formula: str | None,
    table: Any,
    family: str = "logistic",
    *,
    outcome: str | None = None,
    drop_missing: bool = False,
    prior_scale: float | None = None,
    priors: Mapping[str, TermPrior | str] | None = None,
    **sample_arguments: Any,
) -> Run:
    """Draws from the posterior of a regression, by the terms of a formula.

    Variables of the posterior are named as Bambi names them: "Intercept", "distance", and
    "C(month)" with its levels as coordinates; "sigma" is the noise's scale.

    Args:
      formula: such as "late ~ distance + C(month) + log(age)", in formulaic's words; columns of
        texts, and those in C(...), are factors, whose first level the others are compared with.
        None takes all other columns for the `outcome`.
      table: a data frame that narwhals knows (pandas, polars, pyarrow, DuckDB), or the path of a
        CSV, Parquet or Arrow file.
      family: "logistic", "probit", "poisson", "linear" or "robust".
      outcome: the column of the outcome, where there is no formula.
      drop_missing: whether to leave out rows with missing values in the columns that are used.
      prior_scale: as for `amagold.models`; None scales priors by the data. A level's coefficient
        has the prior of a column with as many ones as zeros.
      priors: by the name of a term, its own in place of the usual one, on the scale of its
        coefficients as they are reported: {"distance": amagold.priors.normal(0, 1)}, or the text
        "normal(0, 1)". That of a factor is each level's; that of "sigma" is cut off at zero.
      **sample_arguments: as for `amagold.sample`.
    """
    columns = None
    if formula is not None:  # of a file no others are read
        parsed = parsed_formula(formula)
        columns = [parsed.outcome, *parsed.columns]
    shown = None if sample_arguments.get("progress", True) else False
    # not kept here: the table of a file is needed no longer than it is coded
    model = model_of(
        formula,
        read_table(table, columns=columns, shown=shown),
        family,
        outcome,
        drop_missing,
        prior_scale,
        priors,
    )
    model = dataclasses.replace(model, source=table)
    run = sample(model.target, **sample_arguments)
    run.attributes["formula"] = model.terms.formula
    run.attributes["family"] = family
    run.attributes["table"] = model.facts.to_json()
    run.model = model
    run.warnings.extend(model.terms.doubts)
    warn(list(model.terms.doubts), 1)
    return run


def model_of(
    formula: str | None,
    frame: Any,
    family: str,
    outcome: str | None,
    drop_missing: bool,
    prior_scale: float | None,
    priors: Mapping[str, TermPrior | str] | None = None,
) -> TableModel:
    """The posterior of a formula and a table."""
    if family not in FAMILIES:
        known = ", ".join(map(repr, FAMILIES))
        raise ValueError(f"family must be one of {known}, got {family!r}")
    parsed = _parsed(formula, outcome, frame)
    left, num_read = parsed.outcome, len(frame)
    frame = without_missing(frame, [left, *parsed.columns], drop_missing)
    observed, classes = outcome_of(left, frame, family)
    terms, coded = terms_of(parsed, frame, observed if family in TWO_CLASSES else None)
    options = {} if prior_scale is None else {"prior_scale": prior_scale}
    build = getattr(models, family)
    try:
        target = build(coded, observed, intercept=terms.has_intercept, **options)
    except ValueError as reason:  # models speak of X and y
        said = str(reason)
        column = f"outcome {left!r}" + said[1:] if said.startswith("y ") else said
        raise ValueError(column) from None
    scale = TermScale(target.transform, terms.terms, FAMILIES[family])
    names, dims = _labels(terms.terms)
    target = dataclasses.replace(target, transform=scale, names=names, dims=dims)
    facts = describe_table(frame, num_read, left, classes, terms, coded)
    return TableModel(
        with_priors(target, priors),
        terms,
        family,
        left,
        classes,
        facts,
        names=coded.names,
        law=law_of(target),
        scale=FAMILIES[family],
        arguments={"drop_missing": drop_missing, "prior_scale": prior_scale, "priors": priors},
        example=first_row(frame, terms.columns),
    )


def _parsed(formula: str | None, outcome: str | None, frame: Any) -> ParsedFormula:
    if formula is not None:
        if outcome is not None:
            raise ValueError("outcome must not be given with a formula, which names it before '~'")
        return parsed_formula(formula)
    if outcome is None or outcome not in frame.columns:
        known = ", ".join(map(repr, frame.columns[:20]))
        raise ValueError(f"outcome must be one of the columns {known}, got {outcome!r}")
    others = [name for name in frame.columns if name != outcome]
    if len(others) > MOST_NUMBERS:
        raise ValueError(
            f"table must have at most {MOST_NUMBERS:,} columns beside the outcome, got "
            f"{len(others):,}; choose among them with a formula"
        )
    return formula_of_all(outcome, others)


def _labels(terms: tuple[Term, ...]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The levels of factors, along an axis of their own."""
    factors = [term for term in terms if term.levels is not None]
    return (
        {f"{term.name}_dim": list(term.levels or ()) for term in factors},
        {term.name: [f"{term.name}_dim"] for term in factors},
    )
