"""The posterior of a formula without random effects."""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax.numpy as jnp

from amagold import models
from amagold.models._merged_rows import MergedRows
from amagold.tables._families import FAMILIES
from amagold.tables._term_codes import INTERCEPT, Term
from amagold.tables._term_priors import with_priors
from amagold.tables._term_scale import TermScale
from amagold.tables._terms import FormulaTerms
from amagold.target import Posterior


def fixed_target(
    terms: FormulaTerms,
    found: MergedRows,
    family: str,
    options: dict[str, Any],
    priors: Mapping[str, Any] | None,
    outcome: str,
    classes: tuple[str, ...],
) -> Posterior:
    """What is sampled, with the names of the formula and the priors that were given."""
    target = _built(found, family, terms.has_intercept, options)
    reported = terms.terms
    if family == "ordinal":  # thresholds take the place of the intercept
        reported = tuple(
            term._replace(places=tuple(place - 1 for place in term.places))
            for term in terms.terms
            if term.name != INTERCEPT
        )
    scale = TermScale(target.transform, reported, FAMILIES[family], family == "softmax")
    names, dims = labels_of(reported, f"{outcome}_dim", classes if family == "softmax" else ())
    named = dataclasses.replace(target, transform=scale, names=names, dims=dims)
    return with_priors(named, priors)


def _built(found: MergedRows, family: str, has_intercept: bool, options: dict[str, Any]) -> Any:
    """The posterior of the coded table."""
    build = getattr(models, family)
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


def labels_of(
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
