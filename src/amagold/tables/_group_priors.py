"""Priors of single terms beside random effects: normal or a horseshoe for fixed terms, half-normal
or half-Student-t for the standard deviations of effects, any for that of the noise.

The sweep needs the prior of the coefficients to be Gaussian, given local scales. A prior on the
scale of the table is one on that of positions: theta_j = unit_j u_j for slopes, and theta_0 = a + b
(u_0 + o . u).
"""

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.array_types import Float
from amagold.models._mixed import GUESS
from amagold.models._mixed_shrinkage import with_shrinkage
from amagold.models._priors import CoefficientPrior
from amagold.priors import TermPrior
from amagold.tables._chosen_priors import chosen_priors, names_in
from amagold.tables._group_scale import GroupedScale
from amagold.tables._group_terms import GroupTerm
from amagold.tables._shrunk_terms import Shrunk, check_names, doubts_about, named_horseshoes
from amagold.tables._term_codes import INTERCEPT
from amagold.tables._term_priors import POSITIVE, GivenPrior, given_prior
from amagold.tables._terms import FormulaTerms
from amagold.target import Posterior
from amagold.target._effects_prior import EffectsPrior, ScalePrior
from amagold.target._group_effects import NOISE

Chosen = list[tuple[str, TermPrior]]


@trees.record()
class GivenNoise:
    """Of the log of the noise's scale, by a prior of the scale itself on that of the table."""

    given: GivenPrior
    unit: Float[jax.Array, ""]

    def __call__(self, log_scale: jax.Array) -> jax.Array:
        return self.given(self.unit * jnp.exp(log_scale))


def with_group_priors(
    target: Posterior, terms: FormulaTerms, priors: Mapping[str, TermPrior | str] | None
) -> Posterior:
    """The target of a formula with random effects, with these priors in place of the usual ones."""
    if not priors:
        return target
    scale, prior = target.transform, target.log_prior
    assert isinstance(scale, GroupedScale)
    assert isinstance(prior, EffectsPrior)
    scales = [name for term in terms.groups for name in term.scales]
    noise = NOISE if NOISE in target.init else None
    chosen = chosen_priors(priors, [term.name for term in terms.terms], noise, scales)
    horseshoes = [each for each in chosen if each[1].kind == "horseshoe"]
    shrunk = named_horseshoes([each for each in horseshoes if not set(each[0]) & set(scales)])
    hidden = {name for one in shrunk for name in one.terms}
    each = [(name, given) for names, given in chosen for name in names if name not in hidden]
    halves = [*scales, noise]
    fixed = [(name, given) for name, given in each if name not in halves]
    words = _words(each, halves, shrunk)
    by_name = dict(each)
    of_noise = prior.noise
    if noise in by_name:
        unit = jnp.float32(scale.scale.response_scale)
        of_noise = GivenNoise(given_prior(noise, by_name[noise], POSITIVE), unit)
    found = dataclasses.replace(
        target,
        log_prior=dataclasses.replace(
            prior,
            fixed=_of_fixed(prior.fixed, scale, fixed, words),
            noise=of_noise,
            **_of_scales(prior, scale, by_name),
        ),
    )
    return _with_horseshoes(found, scale, shrunk) if shrunk else found


def _with_horseshoes(
    target: Posterior, scale: GroupedScale, shrunk: tuple[Shrunk, ...]
) -> Posterior:
    noise = NOISE if NOISE in target.init else None
    names = {term.name for term in scale.terms}
    check_names(shrunk, names | {name for block in scale.blocks for name in block.variables}, noise)
    of_term = {term.name: term.places for term in scale.terms}
    places = [[place for name in one.terms for place in of_term[name]] for one in shrunk]
    priors = [one.prior for one in shrunk]
    found = with_shrinkage(target, scale.scale.fixed, places, priors, ())
    prior: Any = found.log_prior
    said = dataclasses.replace(prior.shrunk, doubts=doubts_about(shrunk, prior.shrunk.horseshoe))
    return dataclasses.replace(
        found,
        log_prior=dataclasses.replace(prior, shrunk=said),
        transform=dataclasses.replace(scale, taus=tuple(one.tau for one in shrunk)),
    )


def has_priors(term: GroupTerm, priors: Mapping[str, TermPrior | str] | None) -> bool:
    """Whether some speak of the group's scales."""
    named = {name for text in priors or () for name in names_in(text, term.scales)}
    return not named.isdisjoint(term.scales)


def _words(chosen: Chosen, scales: list[Any], shrunk: tuple[Shrunk, ...]) -> str:
    said = [
        f"{name} ~ {'the positive half of ' * (name in scales)}{given}" for name, given in chosen
    ]
    said += [one.words for one in shrunk]
    # braces are places of figures
    told = ", ".join(said).replace("{", "(").replace("}", ")")
    return f" Priors as given instead, on the scale of the table: {told}."


def _of_fixed(prior: Any, scale: GroupedScale, chosen: Chosen, words: str) -> CoefficientPrior:
    """Independent normals of the coefficients that are sampled."""
    assert isinstance(prior, CoefficientPrior)
    for name, given in chosen:
        if given.kind != "normal":
            raise ValueError(
                "priors must be normal or horseshoes for fixed terms beside random effects, got "
                f"{given} for {name!r}; give amagold.priors.normal, or the groups as factors"
            )
    transform = scale.scale.fixed
    reported: Any = (lambda position: position) if transform is None else transform
    size = prior.center.shape[0]
    zero = np.asarray(reported(np.zeros(size)), np.float64)
    units = np.asarray(reported(np.ones(size)), np.float64) - zero
    center, width = (np.array(values, np.float64) for values in (prior.center, prior.scale))
    offsets = prior.offsets
    places = {term.name: list(term.places) for term in scale.terms}
    for name, given in chosen:
        at = places[name]
        if name == INTERCEPT:
            # theta_0 = zero_0 + b (u_0 + o . u), the second from one step along each coordinate
            along = np.asarray(reported(np.eye(size)), np.float64)[:, 0] - zero[0]
            units[0] = along[0]
            offsets = jnp.asarray(along[1:] / along[0], jnp.float32)
        center[at] = (given.location - zero[at]) / units[at]
        width[at] = given.scale / np.abs(units[at])
    return dataclasses.replace(
        prior,
        center=jnp.asarray(center, jnp.float32),
        scale=jnp.asarray(width, jnp.float32),
        offsets=offsets,
        words=prior.words + words,
    )


def _of_scales(
    prior: EffectsPrior, scale: GroupedScale, given: Mapping[str, TermPrior]
) -> dict[str, Any]:
    """The priors of standard deviations, with those that were given, and what is said of them."""
    factors, figures = [], np.array(prior.figures)
    response = float(scale.scale.response_scale)
    for number, (usual, block) in enumerate(zip(prior.factors, scale.blocks, strict=True)):
        widths = np.asarray(scale.scale.units[number].widths, np.float64)
        assert isinstance(usual, ScalePrior)
        factors.append(_of_block(usual, block.scales, widths / response, given))
        figures[number] = float(factors[-1].scales[0]) * response
    return {
        "factors": tuple(factors),
        "guesses": tuple(jnp.log(each.scales) - GUESS for each in factors),
        "figures": jnp.asarray(figures, jnp.float32),
    }


def _of_block(
    usual: ScalePrior, names: tuple[str, ...], units: np.ndarray, given: Mapping[str, TermPrior]
) -> ScalePrior:
    """Of effects that vary together; a reported scale times its unit is one that is sampled."""
    own = [given.get(name) for name in names]
    if not any(own):
        return usual
    scales, freedoms = np.array(usual.scales, np.float64), np.full(len(names), usual.freedom)
    for place, (name, one) in enumerate(zip(names, own, strict=True)):
        if one is None:
            continue
        if one.kind not in ("normal", "student_t") or one.location != 0.0:
            raise ValueError(
                f"priors must be normal or student_t about zero for {name!r}, of which the "
                f"positive half is meant, got {one}; give student_t(3, 0, scale)"
            )
        scales[place] = one.scale * units[place]
        freedoms[place] = math.inf if one.kind == "normal" else one.degrees_of_freedom
    if len(set(freedoms.tolist())) > 1:
        raise ValueError(
            f"priors must be of one kind for effects that vary together, {', '.join(names)}, which "
            "may differ in scale; give each of them normal, or student_t with the same degrees of "
            "freedom (3 is usual)"
        )
    return dataclasses.replace(
        usual,
        scales=jnp.asarray(scales, jnp.float32),
        freedom=jnp.asarray(freedoms[0], jnp.float32),
    )
