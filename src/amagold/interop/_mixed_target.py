"""A NumPyro model with effects of groups as a mixed model: its levels then have exact tests of
their own, and a draw looks at few rows however many effects there are.
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.data import InMemory
from amagold.interop._mixed_agreement import MixedParts, agrees
from amagold.interop._mixed_families import MixedFamily
from amagold.interop._mixed_rows import MixedRows, RowNumbers, mixed_rows
from amagold.interop._mixed_sites import FromSites, MixedSites, MixedSiteTransform, ToSites
from amagold.interop._model_survey import ModelContents
from amagold.interop._observed_site import MOST_HELD
from amagold.interop._one_row import NumpyroModel, unreported_words
from amagold.interop._site_priors import SiteScale, SiteScalePrior
from amagold.interop._site_roles import base_of, roles_of
from amagold.interop._site_values import DeterministicSites
from amagold.models._priors import CoefficientPrior
from amagold.models._regression import Predictor
from amagold.models._weighted import Weighted
from amagold.planning._effects_plan import MOST_SLOPES
from amagold.target import Posterior
from amagold.target._effects_prior import EffectsPrior
from amagold.target._group_effects import (
    FIXED,
    NOISE,
    GroupedExample,
    GroupedLikelihood,
    GroupedPredictor,
    scale_name,
)

GUESS = 0.5  # of a log scale below the middle of its prior, for searches


def mixed_target(
    model: NumpyroModel,
    held: Any,
    contents: ModelContents,
    examples: InMemory,
    unreported: tuple[str, ...],
) -> Posterior | None:
    """The model as a mixed one; None where it is none, or cannot be seen to be."""
    parts = _mixed_parts(model, held, contents, examples)
    if parts is None:
        return None
    words = ("Priors are those of the model.", *unreported_words(unreported))
    fixed = dataclasses.replace(parts.prior.fixed, words=" ".join(words))
    row = examples.rows(np.zeros(1, np.int32))
    reported = model.deterministic
    return Posterior(
        parts.likelihood,
        dataclasses.replace(parts.prior, fixed=fixed),
        parts.data,
        init=parts.init,
        bounds=parts.likelihood.bounds(),
        transform=parts.transform,
        dims={name: list(site.dims) for name, site in contents.latents.items()}
        | {name: list(contents.deterministic[name]) for name in reported},
        derived=DeterministicSites(model, held, row) if reported else None,
    )


def _mixed_parts(
    model: NumpyroModel, held: Any, contents: ModelContents, examples: InMemory
) -> MixedParts | None:
    if trees.size(held) > MOST_HELD:
        return None
    row = examples.rows(np.int32(0))
    for roles in roles_of(model, held, contents.latents, row):
        sites = MixedSites.of(model, held, roles, contents.latents)
        if sites.num_coefficients > MOST_SLOPES:
            return None
        numbers = RowNumbers(sites)
        family = _family(numbers, row)
        if family is None:
            continue
        rows = mixed_rows(numbers, examples.arrays, contents.num_rows or 0)
        if rows is None:
            return None
        columns = [None if (each == 1.0).all() else each for each in rows.columns]
        sites = sites.with_columns([each is not None for each in columns])
        parts = _parts(sites, family, rows._replace(columns=tuple(columns)), examples, contents)
        return parts if agrees(parts, sites, examples) else None
    return None


def _family(numbers: RowNumbers, row: Any) -> MixedFamily | None:
    """Nothing is computed but constants."""
    kept: list[MixedFamily | None] = []
    jax.eval_shape(lambda row: kept.append(numbers.family(row)), row)
    return kept[-1]


def _parts(
    sites: MixedSites,
    family: MixedFamily,
    rows: MixedRows,
    examples: InMemory,
    contents: ModelContents,
) -> MixedParts:
    counts = rows.weight > 0.0
    outcome, weight = family.outcome, None
    if not (rows.weight == 1.0).all():
        outcome, weight = Weighted(outcome), jnp.asarray(rows.weight[counts])
    kept = jax.tree.map(lambda leaf: jnp.asarray(leaf[counts]), rows._replace(weight=None))
    own = kept.own._replace(
        predictors=kept.slopes, weight=weight, offset=kept.offset if rows.offset.any() else None
    )
    columns = tuple(None if column is None else column[:, None] for column in kept.columns)
    names = tuple(form.name for form in sites.forms)
    likelihood = GroupedLikelihood(GroupedPredictor(Predictor(), names, family.has_noise), outcome)
    found = sites.sites(sites.at_zero(), jax.tree.map(lambda leaf: leaf[:1], examples.arrays))
    prior = _prior(sites, found)
    init: dict[str, Any] = {FIXED: np.asarray(prior.fixed.center)}
    for form, guess in zip(sites.forms, prior.guesses, strict=True):
        shape = (form.num_levels, 1) if form.is_vector else (form.num_levels,)
        init[form.name] = np.zeros(shape, np.float32)
        init[scale_name(form.name)] = np.asarray(guess if form.is_vector else guess[0])
    if prior.noise is not None:
        init[NOISE] = np.asarray(prior.noise.center)
    inside = any(effect.is_of_rows for effect in sites.roles.effects)
    to_sites = ToSites(sites, examples.arrays if inside else examples.rows(np.zeros(1, np.int32)))
    transform = MixedSiteTransform(
        to_sites,
        FromSites(to_sites),
        tuple((name, np.ndim(value)) for name, value in init.items()),
        tuple((name, len(site.shape)) for name, site in contents.latents.items()),
    )
    data = GroupedExample(own, kept.codes, columns)
    places = None if counts.all() else jnp.asarray(np.flatnonzero(counts))
    return MixedParts(likelihood, prior, data, init, transform, places)


def _prior(sites: MixedSites, found: dict[str, Any]) -> EffectsPrior:
    center, width = [], []
    for name, shape in sites.shapes:
        fn = base_of(found[name]["fn"])
        # a flat prior has no end
        center.append(np.broadcast_to(np.asarray(getattr(fn, "loc", 0.0)), shape).ravel())
        width.append(np.broadcast_to(np.asarray(getattr(fn, "scale", np.inf)), shape).ravel())
    of_coefficients = CoefficientPrior(
        jnp.asarray(np.concatenate(center), jnp.float32),
        jnp.asarray(np.concatenate(width), jnp.float32),
        None,
        jnp.zeros(0),
        "",
    )
    factors = tuple(
        SiteScalePrior.of(form, base_of(found[effect.scale]["fn"]))
        for form, effect in zip(sites.forms, sites.roles.effects, strict=True)
    )
    noise = sites.roles.noise
    return EffectsPrior(
        of_coefficients,
        factors,
        tuple(jnp.log(prior.scales) - GUESS for prior in factors),
        None if noise is None else SiteScale.of(base_of(found[noise]["fn"])),
        jnp.zeros(len(factors)),
    )
