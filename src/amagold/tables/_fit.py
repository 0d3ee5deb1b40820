"""`amagold.fit`: from a table and a formula to draws with names."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from amagold.core.freed_memory import give_back
from amagold.core.scratch import is_large
from amagold.models._merged_rows import MergedRows, merged_rows
from amagold.priors import TermPrior
from amagold.sampling import sample
from amagold.sampling._advice import warn
from amagold.sampling._kept_files import NONE, keeping
from amagold.sampling._run import Run
from amagold.tables._chosen_priors import by_text
from amagold.tables._data_warnings import levels_without_events, light_weights
from amagold.tables._families import FAMILIES, OTHER_NAMES, noise_of
from amagold.tables._fixed_model import fixed_target
from amagold.tables._formula_text import ParsedFormula, formula_of_all, parsed_formula
from amagold.tables._group_checks import check_grouped, with_doubts_about_classes
from amagold.tables._grouped_model import grouped_target, with_groups
from amagold.tables._large_table import coded_parts
from amagold.tables._missing_values import without_missing
from amagold.tables._new_rows import first_row
from amagold.tables._read_table import read_table
from amagold.tables._row_columns import RowColumns
from amagold.tables._scatter_check import check_scatter
from amagold.tables._stored_model import files_of
from amagold.tables._table_description import describe_table, num_distinct
from amagold.tables._table_model import TableModel, law_of
from amagold.tables._table_outcome import TWO_CLASSES, outcome_of
from amagold.tables._term_codes import MOST_NUMBERS
from amagold.tables._term_priors import doubts_of
from amagold.tables._terms import terms_of

COUNTS = ("poisson", "negative_binomial")


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
    dispersion: float | None = None,
    out_of_core: bool | None = None,
    **sample_arguments: Any,
) -> Run:
    """Draws from the posterior of a regression, by the terms of a formula.

    Variables of the posterior are named as Bambi names them: "Intercept", "distance", and
    "C(month)" with its levels as coordinates; "sigma" is the noise's scale, "alpha" the shape of
    negative binomial and gamma outcomes; "1|origin" are the effects of the levels of a group,
    "1|origin_sigma" is their standard deviation. Rows that are alike are merged into one that
    counts as often, where that makes the table clearly smaller.

    Args:
      formula: such as "late ~ distance + C(month) + log(age)", in formulaic's words; columns of
        texts, and those in C(...), are factors, whose first level the others are compared with.
        (1 | origin) lets the intercept vary by the levels of a column, (1 + distance | origin) the
        slope too, correlated; (1 | a) + (1 | b) are crossed, (1 | a/b) nested groups.
        None takes all other columns for the `outcome`.
      table: a data frame that narwhals knows (pandas, polars, pyarrow, DuckDB), the path of a CSV,
        Parquet or Arrow file, of a folder of them or of a row store, or what `amagold.data.open`
        gives. Of files only the columns that are used are read.
      family: "logistic", "probit", "poisson", "negative_binomial", "gamma", "linear", "robust",
        "softmax" (a coefficient for each class) or "ordinal" (a cumulative logit, whose cutpoints
        are "threshold").
      outcome: the column of the outcome, where there is no formula.
      drop_missing: whether to leave out rows with missing values in the columns that are used.
      prior_scale: as for `amagold.models`; None scales priors by the data. A level's coefficient
        has the prior of a column with as many ones as zeros.
      priors: by the name of a term, its own in place of the usual one, on the scale of its
        coefficients as they are reported: {"distance": amagold.priors.normal(0, 1)}, or the text
        "normal(0, 1)". That of a factor is each level's; those of "sigma" and "1|origin_sigma" are
        cut off at zero, that of "threshold" is each cutpoint's, where they rise.
        A tuple of names speaks of several terms, and "*" of all but the intercept that have no
        other: {"*": amagold.priors.horseshoe(1)} shares one scale, reported as "horseshoe_tau".
      weights: how often each row counts, as a column's name or an array; rows of weight zero are
        left out.
      offset: what is added to the predictor of each row, likewise.
      trials: how often each row was tried, likewise; the outcome counts the successes ("logistic",
        "probit").
      exposure: over what each count was seen, likewise; the offset is its logarithm ("poisson",
        "negative_binomial").
      dispersion: for "negative_binomial" with random effects: a with var y = m + m^2 / a at the
        mean m, which is then known.
      out_of_core: whether rows are kept in temporary files instead of memory, one column at a time
        excepted; None does so where they are more than a quarter of this machine's memory.
      **sample_arguments: as for `amagold.sample`.
    """
    of_rows = RowColumns(weights, offset, trials, exposure)
    columns = None
    if formula is not None:  # of a file no others are read
        parsed = parsed_formula(formula)
        named = [parsed.outcome, *parsed.all_columns, *of_rows.named.values()]
        columns = list(dict.fromkeys(named))
    shown = None if sample_arguments.get("progress", True) else False
    if of_rows.has_arrays:  # which nobody else has: kept with the table
        frame = read_table(table, columns=columns, shown=shown, out_of_core=out_of_core)
        frame, of_rows = of_rows.with_arrays(frame)
        table = frame.to_native()
    # not kept here: the table of a file is needed no longer than it is coded
    model = model_of(
        formula,
        read_table(table, columns=columns, shown=shown, out_of_core=out_of_core),
        family,
        outcome,
        drop_missing,
        prior_scale,
        priors,
        out_of_core,
        dispersion,
        **of_rows._asdict(),
    )
    model = model if model.source is not None else dataclasses.replace(model, source=table)
    give_back()  # the table, and what it was coded by
    # with the first checkpoint, so that a run that is killed can go on
    with keeping(NONE if sample_arguments.get("store") is None else files_of(model)):
        run = sample(model.target, **sample_arguments)
    give_back()
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
    out_of_core: bool | None = None,
    dispersion: float | None = None,
    **of_rows: Any,
) -> TableModel:
    """The posterior of a formula and a table."""
    if family not in FAMILIES:
        known = ", ".join(map(repr, FAMILIES))
        meant = OTHER_NAMES.get(family) if isinstance(family, str) else None
        remedy = f"; that is called {meant} here" if meant else ""
        raise ValueError(f"family must be one of {known}, got {family!r}{remedy}")
    given = RowColumns(**of_rows)
    given.check(family)
    parsed = _parsed(formula, outcome, frame, list(given.named.values()))
    if FAMILIES[family] in parsed.parts:
        raise ValueError(
            f"table must not have a column called {FAMILIES[family]!r} for {family}, whose noise "
            "has that name; rename it"
        )
    if parsed.groups:
        check_grouped(parsed, family, dispersion)
    elif dispersion is not None:
        raise ValueError(
            "dispersion must not be given for a formula without random effects, whose shape alpha "
            "is found; leave it out, or give priors={'alpha': ...}"
        )
    left, num_read = parsed.outcome, len(frame)
    frame, columns = given.with_arrays(frame)
    needed = list(dict.fromkeys([left, *parsed.all_columns, *columns.named.values()]))
    if out_of_core is None:
        out_of_core = is_large(8.0 * len(frame) * len(needed))
    frame = without_missing(frame, needed, drop_missing, out_of_core)
    num_whole, frame = len(frame), columns.counting(frame, out_of_core)
    observed, classes = outcome_of(left, frame, family)
    rows = columns.terms(frame)
    classes_seen = observed if family in TWO_CLASSES else None
    # sums stand for all rows of a linear model; rows of groups are not merged
    is_merged = family != "linear" and not parsed.groups
    if out_of_core:
        merging = family if is_merged else None
        terms, coded, found = coded_parts(parsed, frame, observed, rows, merging, classes_seen)
    else:
        terms, coded = terms_of(parsed, frame, classes_seen, rows.trials)
        found = merged_rows(coded, observed, rows, family) if is_merged else None
    found = MergedRows(coded, observed, rows, len(coded)) if found is None else found
    doubts = light_weights(rows.weights, len(coded.names) + terms.has_intercept)
    if family in COUNTS:
        doubts += levels_without_events(coded, observed)
    if family in ("linear", "robust"):
        check_scatter(left, coded, observed - (0.0 if rows.offset is None else rows.offset))
    terms = dataclasses.replace(terms, doubts=(*terms.doubts, *doubts))
    priors = by_text(priors)
    asked = {"prior_scale": prior_scale, "dispersion": dispersion}
    options = {name: value for name, value in asked.items() if value is not None}
    try:
        if parsed.groups:
            terms, of_groups = with_groups(terms, frame, rows.counts, family, out_of_core)
            if classes_seen is not None:
                terms = with_doubts_about_classes(terms, of_groups, classes_seen, rows.trials)
            target = grouped_target(terms, found, of_groups, family, options, priors)
        else:
            target = fixed_target(terms, found, family, options, priors, left, classes)
    except ValueError as reason:  # models speak of X and y
        said = str(reason)
        column = f"outcome {left!r}" + said[1:] if said.startswith("y ") else said
        raise ValueError(column) from None
    merged, weightless = num_distinct(target), num_whole - len(frame)
    facts = describe_table(frame, num_read, left, classes, terms, coded, rows, merged, weightless)
    terms = dataclasses.replace(terms, doubts=(*terms.doubts, *doubts_of(target)))
    return TableModel(
        target,
        terms,
        family,
        left,
        classes,
        facts,
        names=coded.names,
        law=law_of(target, given.trials is not None),
        scale=noise_of(family, bool(parsed.groups)),
        arguments={
            "drop_missing": drop_missing,
            **asked,
            "priors": priors,
            **given.remembered,
        },
        example=first_row(frame, terms.columns),
        source=frame.to_native() if out_of_core else None,  # whose rows are at hand
    )


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
