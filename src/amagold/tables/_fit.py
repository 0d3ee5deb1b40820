"""`amagold.fit`: from a table and a formula to draws with names."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from amagold import models
from amagold.models._coded_rows import CodedTable
from amagold.models._merged_rows import MergedRows, merged_rows
from amagold.models._row_terms import RowTerms
from amagold.priors import TermPrior
from amagold.sampling import sample
from amagold.sampling._advice import warn
from amagold.sampling._kept_files import NONE, keeping
from amagold.sampling._run import Run
from amagold.tables._chosen_priors import by_text
from amagold.tables._families import FAMILIES
from amagold.tables._formula_text import ParsedFormula, formula_of_all, parsed_formula
from amagold.tables._missing_values import without_missing
from amagold.tables._new_rows import first_row
from amagold.tables._read_table import read_table
from amagold.tables._row_columns import RowColumns
from amagold.tables._stored_model import files_of
from amagold.tables._table_description import describe_table, num_distinct
from amagold.tables._table_model import TableModel, law_of
from amagold.tables._table_outcome import TWO_CLASSES, outcome_of
from amagold.tables._term_codes import INTERCEPT, MOST_NUMBERS, Term
from amagold.tables._term_priors import doubts_of, with_priors
from amagold.tables._term_scale import TermScale
from amagold.tables._terms import terms_of


def fit(
    formula: str | None,
    table: Any,
    family: str = "logistic",
    *,
    outcome: str | None = None,
    drop_missing: bool = False,
    prior_scale: float | None = None,
    priors: Mapping[str | tuple[str, ...], TermPrior | str] | None = None,
    weights: Any = None,
    offset: Any = None,
    trials: Any = None,
    exposure: Any = None,
    **sample_arguments: Any,
) -> Run:
    """Draws from the posterior of a regression, by the terms of a formula.

    Variables of the posterior are named as Bambi names them: "Intercept", "distance", and
    "C(month)" with its levels as coordinates; "sigma" is the noise's scale, "alpha" the shape of
    negative binomial and gamma outcomes. Rows that are alike are merged into one that counts as
    often, where that makes the table clearly smaller.

    Args:
      formula: such as "late ~ distance + C(month) + log(age)", in formulaic's words; columns of
        texts, and those in C(...), are factors, whose first level the others are compared with.
        None takes all other columns for the `outcome`.
      table: a data frame that narwhals knows (pandas, polars, pyarrow, DuckDB), the path of a CSV,
        Parquet or Arrow file, of a folder of them or of a row store, or what `amagold.data.open`
        gives. Of files only the columns that are used are read, which must fit into memory.
      family: "logistic", "probit", "poisson", "negative_binomial", "gamma", "linear", "robust",
        "softmax" (a coefficient for each class) or "ordinal" (a cumulative logit, whose cutpoints
        are "threshold").
      outcome: the column of the outcome, where there is no formula.
      drop_missing: whether to leave out rows with missing values in the columns that are used.
      prior_scale: as for `amagold.models`; None scales priors by the data. A level's coefficient
        has the prior of a column with as many ones as zeros.
      priors: by the name of a term, its own in place of the usual one, on the scale of its
        coefficients as they are reported: {"distance": amagold.priors.normal(0, 1)}, or the text
        "normal(0, 1)". That of a factor is each level's; that of "sigma" is cut off at zero.
        A tuple of names speaks of several terms, and "*" of all but the intercept that have no
        other: {"*": amagold.priors.horseshoe(1)} shares one scale, reported as "horseshoe_tau".
      weights: how often each row counts, as a column's name or an array; rows of weight zero are
        left out.
      offset: what is added to the predictor of each row, likewise.
      trials: how often each row was tried, likewise; the outcome counts the successes ("logistic",
        "probit").
      exposure: over what each count was seen, likewise; the offset is its logarithm ("poisson",
        "negative_binomial").
      **sample_arguments: as for `amagold.sample`.
    """
    of_rows = RowColumns(weights, offset, trials, exposure)
    columns = None
    if formula is not None:  # of a file no others are read
        parsed = parsed_formula(formula)
        columns = list(dict.fromkeys([parsed.outcome, *parsed.columns, *of_rows.named.values()]))
    shown = None if sample_arguments.get("progress", True) else False
    if of_rows.has_arrays:  # which nobody else has: kept with the table
        frame, of_rows = of_rows.with_arrays(read_table(table, columns=columns, shown=shown))
        table = frame.to_native()
    # not kept here: the table of a file is needed no longer than it is coded
    model = model_of(
        formula,
        read_table(table, columns=columns, shown=shown),
        family,
        outcome,
        drop_missing,
        prior_scale,
        priors,
        **of_rows._asdict(),
    )
    model = dataclasses.replace(model, source=table)
    # with the first checkpoint, so that a run that is killed can go on
    with keeping(NONE if sample_arguments.get("store") is None else files_of(model)):
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
    priors: Mapping[Any, TermPrior | str] | None = None,
    **of_rows: Any,
) -> TableModel:
    """The posterior of a formula and a table."""
    if family not in FAMILIES:
        known = ", ".join(map(repr, FAMILIES))
        raise ValueError(f"family must be one of {known}, got {family!r}")
    if priors and family == "ordinal":
        raise ValueError("priors must not be given for ordinal; prior_scale sets all of them")
    given = RowColumns(**of_rows)
    given.check(family)
    parsed = _parsed(formula, outcome, frame, list(given.named.values()))
    if FAMILIES[family] in parsed.parts:
        raise ValueError(
            f"table must not have a column called {FAMILIES[family]!r} for {family}, whose noise "
            "has that name; rename it"
        )
    left, num_read = parsed.outcome, len(frame)
    frame, columns = given.with_arrays(frame)
    frame = without_missing(frame, [left, *parsed.columns, *columns.named.values()], drop_missing)
    frame = _counting(frame, columns.named.get("weights"))
    observed, classes = outcome_of(left, frame, family)
    is_two = family in TWO_CLASSES and given.trials is None
    terms, coded = terms_of(parsed, frame, observed if is_two else None)
    options = {} if prior_scale is None else {"prior_scale": prior_scale}
    rows = columns.terms(frame)
    try:
        target = _built(coded, observed, rows, family, terms.has_intercept, options)
    except ValueError as reason:  # models speak of X and y
        said = str(reason)
        column = f"outcome {left!r}" + said[1:] if said.startswith("y ") else said
        raise ValueError(column) from None
    reported = terms.terms
    if family == "ordinal":  # thresholds take the place of the intercept
        reported = tuple(
            term._replace(places=tuple(place - 1 for place in term.places))
            for term in terms.terms
            if term.name != INTERCEPT
        )
    scale = TermScale(target.transform, reported, FAMILIES[family], family == "softmax")
    names, dims = _labels(reported, f"{left}_dim", classes if family == "softmax" else ())
    target = dataclasses.replace(target, transform=scale, names=names, dims=dims)
    facts = describe_table(frame, num_read, left, classes, terms, coded, num_distinct(target))
    priors = by_text(priors)
    whole = with_priors(target, priors)
    terms = dataclasses.replace(terms, doubts=(*terms.doubts, *doubts_of(whole)))
    return TableModel(
        whole,
        terms,
        family,
        left,
        classes,
        facts,
        names=coded.names,
        law=law_of(target),
        scale=FAMILIES[family],
        arguments={
            "drop_missing": drop_missing,
            "prior_scale": prior_scale,
            "priors": priors,
            **given.remembered,
        },
        example=first_row(frame, terms.columns),
    )


def _counting(frame: Any, weights: str | None) -> Any:
    """Without rows of weight zero, of which nothing is to be said."""
    if weights is None or not frame[weights].dtype.is_numeric():
        return frame
    kept = frame.filter(frame[weights] != 0)
    return kept if len(kept) else frame


def _built(
    coded: CodedTable,
    observed: Any,
    rows: RowTerms,
    family: str,
    has_intercept: bool,
    options: dict[str, Any],
) -> Any:
    """The posterior of the coded table; equal rows are merged, unless sums stand for all."""
    build = getattr(models, family)
    if family == "linear":
        found = MergedRows(coded, observed, rows, len(coded))
    else:
        found = merged_rows(coded, observed, rows, family)
    terms = {name: values for name, values in found.rows._asdict().items() if values is not None}
    if family != "ordinal":
        terms["intercept"] = has_intercept
    elif not has_intercept:
        raise ValueError(
            "formula must have an intercept for ordinal, whose thresholds take its place; leave "
            "out '0 +'"
        )
    target = build(found.table, found.outcomes, **terms, **options)
    if not found.is_merged:
        return target
    merged = jnp.asarray([found.num_before, len(found.table)], jnp.int32)
    likelihood = dataclasses.replace(target.log_likelihood, merged=merged)
    return dataclasses.replace(target, log_likelihood=likelihood)


def _parsed(
    formula: str | None, outcome: str | None, frame: Any, of_rows: list[str]
) -> ParsedFormula:
    if formula is not None:
        if outcome is not None:
            raise ValueError("outcome must not be given with a formula, which names it before '~'")
        return parsed_formula(formula)
    if outcome is None or outcome not in frame.columns:
        known = ", ".join(map(repr, frame.columns[:20]))
        raise ValueError(f"outcome must be one of the columns {known}, got {outcome!r}")
    others = [name for name in frame.columns if name not in (outcome, *of_rows)]
    if len(others) > MOST_NUMBERS:
        raise ValueError(
            f"table must have at most {MOST_NUMBERS:,} columns beside the outcome, got "
            f"{len(others):,}; choose among them with a formula"
        )
    return formula_of_all(outcome, others)


def _labels(
    terms: tuple[Term, ...], axis: str, classes: tuple[str, ...]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """The levels of factors, along an axis of their own, and the classes along the last."""
    factors = [term for term in terms if term.levels is not None]
    names: dict[str, Any] = {f"{term.name}_dim": list(term.levels or ()) for term in factors}
    dims: dict[str, Any] = {term.name: [f"{term.name}_dim"] for term in factors}
    if classes:
        names[axis] = list(classes)
        dims = {term.name: [*dims.get(term.name, ()), axis] for term in terms}
    return names, dims
