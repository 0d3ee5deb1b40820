"""Priors of single terms, in the coordinates that are sampled.

What is sampled is u, what is reported theta = T(u). T is linear for coefficients, so that log
p(T(u)) is the log prior of u up to a constant; the noise's scale s is reported of v = log s plus a
constant, and log p(s) + log s is that of v. Thresholds are reported of an intercept and of gaps,
whose usual prior is that of their logarithms: log p(c) + sum_k log(c_k - c_(k - 1)) takes its
place.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.models._noise_names import THRESHOLD
from amagold.models._ordinal import OrdinalPrior
from amagold.models._priors import CoefficientPrior, NoisePrior
from amagold.priors import TermPrior
from amagold.tables._chosen_priors import chosen_priors
from amagold.tables._shrunk_terms import doubts_about, horseshoe_of, named_horseshoes, with_taus
from amagold.tables._term_scale import TermScale
from amagold.target import Posterior
from amagold.target._effects_prior import EffectsPrior
from amagold.target._horseshoe import Horseshoe, HorseshoeGuide

# what terms of a scale of their own are: its positive half, or numbers that rise
POSITIVE, RISING = "positive", "rising"


@trees.record(static=("term", "kind", "words", "range"))
class GivenPrior:
    """The log density of one term on the user's scale, up to a constant."""

    location: jax.Array
    scale: jax.Array
    degrees_of_freedom: jax.Array
    term: str
    kind: str
    words: str
    range: str | None  # POSITIVE, RISING, or None for coefficients

    def __call__(self, values: jax.Array) -> jax.Array:
        away = (values - self.location) / self.scale
        if self.kind == "laplace":
            found = -jnp.abs(away)
        elif self.kind == "smooth_laplace":
            # 1 - sqrt(1 + x^2): as curved at the kink as exp(-|x|) is wide, and as steep far away
            found = 1.0 - jnp.sqrt(1.0 + away**2)
        elif self.kind == "student_t":
            nu = self.degrees_of_freedom
            found = -0.5 * (nu + 1.0) * jnp.log1p(away**2 / nu)
        else:
            found = -0.5 * away**2
        if self.range == POSITIVE:
            return jnp.sum(found) + jnp.log(values)
        return jnp.sum(found) + (jnp.log(jnp.diff(values)).sum() if self.range == RISING else 0.0)


@trees.record(static=("shrunk", "shrunk_words", "doubts"))
class FormulaPrior:
    """The prior of the data's scale for most terms, and the given ones for the others."""

    usual: CoefficientPrior | NoisePrior | OrdinalPrior  # infinitely wide where another is given
    scale: TermScale
    given: tuple[GivenPrior, ...]
    horseshoe: Horseshoe | HorseshoeGuide | None = None
    guide: HorseshoeGuide | None = None  # of the horseshoe, for the search for a mode
    shrunk: tuple[str, ...] = ()  # terms that have a horseshoe
    shrunk_words: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()  # about its units

    def __call__(self, position: Any) -> jax.Array:
        # by many terms a program of many parts, and nobody asks where all is shrunk
        named = self.scale(position) if self.given else {}
        is_beside = isinstance(self.usual, CoefficientPrior) and isinstance(position, dict)
        seen: Any = position["coefficients"] if is_beside else position
        total = self.usual(seen)
        if self.horseshoe is not None:
            total = total + self.horseshoe(trees.flatten(position))
        return sum((prior(named[prior.term]) for prior in self.given), total)

    @property
    def others(self) -> "FormulaPrior":
        """Without the horseshoe, and without kinks."""
        return dataclasses.replace(self.smooth, horseshoe=None)

    @property
    def is_log_concave(self) -> bool:
        kinds = {prior.kind for prior in self.given}
        has_noise = any(prior.range is not None for prior in self.given)
        is_usual = bool(getattr(self.usual, "is_log_concave", False))
        is_smooth = not isinstance(self.horseshoe, Horseshoe)
        return is_usual and is_smooth and not has_noise and "student_t" not in kinds

    @property
    def smooth(self) -> "FormulaPrior":
        """Without kinks and poles, for the mode and its curvature."""
        given = [
            dataclasses.replace(prior, kind="smooth_laplace") if prior.kind == "laplace" else prior
            for prior in self.given
        ]
        return dataclasses.replace(self, given=tuple(given), horseshoe=self.guide)

    def sentences(self) -> tuple[str, ...]:
        said = [f"{prior.term} ~ {prior.words}" for prior in self.given]
        named = ", ".join([*said, *self.shrunk_words])
        noise = {self.scale.noise} - {None}
        terms = {prior.term for prior in self.given} | set(self.shrunk)
        is_all = terms == {*(term.name for term in self.scale.terms), *noise}
        usual = () if is_all else self.usual.sentences()
        others = "" if is_all else " instead"
        return (*usual, f"Priors as given{others}, on the scale of the table: {named}.")


def given_prior(term: str, prior: TermPrior, range: str | None) -> GivenPrior:
    which = {POSITIVE: "the positive half of ", RISING: "where they rise, ", None: ""}[range]
    return GivenPrior(
        jnp.float32(prior.location),
        jnp.float32(prior.scale),
        jnp.float32(prior.degrees_of_freedom or 1.0),
        term,
        prior.kind,
        f"{which}{prior}",
        range,
    )


def with_priors(target: Posterior, priors: Mapping[Any, TermPrior | str] | None) -> Posterior:
    """The target of a formula, with these priors in place of the usual ones of their terms."""
    if not priors:
        return target
    scale, usual = target.transform, target.log_prior
    assert isinstance(scale, TermScale)
    assert isinstance(usual, (CoefficientPrior, NoisePrior, OrdinalPrior))
    places = {term.name: term.places for term in scale.terms}
    chosen = chosen_priors(priors, list(places), scale.noise)
    named = {name for names, _ in chosen for name in names}
    usual = _without(
        usual, [place for name in named for place in places.get(name, ())], scale.noise in named
    )
    of_noise = RISING if scale.noise == THRESHOLD else POSITIVE
    given = [
        given_prior(name, prior, of_noise if name == scale.noise else None)
        for names, prior in chosen
        if prior.kind != "horseshoe"
        for name in names
    ]
    shrunk = named_horseshoes([each for each in chosen if each[1].kind == "horseshoe"])
    if not shrunk:
        return dataclasses.replace(target, log_prior=FormulaPrior(usual, scale, tuple(given)))
    if scale.noise == THRESHOLD:
        raise ValueError(
            "priors must not give a horseshoe to terms of ordinal, which is not known yet; give "
            "normal, student_t or laplace"
        )
    target = with_taus(target, shrunk)
    horseshoe, guide = horseshoe_of(target, shrunk)
    assert isinstance(target.transform, TermScale)
    prior = FormulaPrior(
        usual,
        target.transform,
        tuple(given),
        horseshoe,
        guide,
        tuple(name for one in shrunk for name in one.terms),
        tuple(one.words for one in shrunk),
        doubts_about(shrunk, horseshoe),
    )
    return dataclasses.replace(target, log_prior=prior)


def _without(usual: Any, places: list[int], is_noise: bool) -> Any:
    """Infinitely wide at these places: nothing is said there."""
    if isinstance(usual, NoisePrior):
        inner = _without(usual.coefficients, places, False)
        log_scale = jnp.full_like(usual.log_scale, jnp.inf) if is_noise else usual.log_scale
        return dataclasses.replace(usual, coefficients=inner, log_scale=log_scale)
    if isinstance(usual, OrdinalPrior):
        # the sampled coefficients have an intercept, minus the first threshold, before the others
        inner = [place + 1 for place in places] + [0] * is_noise
        log_scale = jnp.full_like(usual.log_scale, jnp.inf) if is_noise else usual.log_scale
        coefficients = _without(usual.coefficients, inner, False)
        return dataclasses.replace(usual, coefficients=coefficients, log_scale=log_scale)
    if not places:
        return usual
    return dataclasses.replace(usual, scale=usual.scale.at[jnp.asarray(places)].set(jnp.inf))


def doubts_of(target: Posterior) -> tuple[str, ...]:
    """What is to be said about its priors."""
    prior = target.log_prior
    if isinstance(prior, EffectsPrior):
        return () if prior.shrunk is None else prior.shrunk.doubts
    return prior.doubts if isinstance(prior, FormulaPrior) else ()
