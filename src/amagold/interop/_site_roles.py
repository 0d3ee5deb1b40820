"""Which latent sites of a NumPyro model are effects of groups, which are their scales, and which
are coefficients that all rows share: what a mixed model has. It is read off the program, as affine
numbers are.

    effects, centred      a ~ Normal(loc, s), loc affine in the coefficients
    effects, standard     a ~ Normal(0, 1), seen as a s
    scales                s, positive, with a prior that no other site is in
    coefficients          b ~ Normal of fixed numbers, or flat
"""

from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import distributions

from amagold.interop._affine_trace import evaluate
from amagold.interop._model_survey import LatentSite
from amagold.interop._one_row import NumpyroModel, as_one_row
from amagold.interop._traced_numbers import (
    CONSTANT,
    FIXED,
    LOG_AFFINE,
    LOG_SCALE,
    STANDARD,
    Traced,
    numbered,
)

MOST_PAIRINGS = 40  # of standard effects with scales, that are tried


@dataclass(frozen=True)
class EffectSite:
    """A site whose values are effects of the levels of a group."""

    name: str
    scale: str  # the site of their standard deviation
    num_levels: int
    is_standard: bool  # sampled as standard normals, and seen times the scale
    is_of_rows: bool  # one for each row of the data


class SiteRoles(NamedTuple):
    """All latent sites of a model, each by what it is."""

    coefficients: tuple[str, ...]
    effects: tuple[EffectSite, ...]
    noise: str | None  # the scale of the rows' own noise

    def kinds(self) -> dict[str, str]:
        """Of the numbers that a trace is given: values of coefficients and effects, logarithms of
        scales.
        """
        found = {}
        for number, effect in enumerate(self.effects):
            found[effect.scale] = numbered(LOG_SCALE, number)
            if effect.is_standard:
                found[effect.name] = numbered(STANDARD, number)
        if self.noise is not None:
            found[self.noise] = numbered(LOG_SCALE, len(self.effects))
        return found

    @property
    def scales(self) -> tuple[str, ...]:
        """The positive sites, of which a trace is given the logarithms."""
        noise = () if self.noise is None else (self.noise,)
        return (*(effect.scale for effect in self.effects), *noise)


class Prior(NamedTuple):
    """A latent site's distribution, traced."""

    kind: type
    parameters: dict[str, Traced]  # loc and scale of a normal
    is_fixed: bool  # whether no other site is in it
    is_flat: bool  # over all numbers


def base_of(fn: Any) -> Any:
    """A distribution without its axes."""
    while isinstance(fn, (distributions.ExpandedDistribution, distributions.Independent)):
        fn = fn.base_dist
    return fn


class OneRowModel(NamedTuple):
    """Of a model that is called with one row; positive sites are traced by their logarithms."""

    model: NumpyroModel
    held: Any
    latents: dict[str, LatentSite]
    example: Any

    @property
    def positive(self) -> list[str]:
        return [name for name, site in self.latents.items() if site.is_positive]

    def zeros(self) -> dict[str, jax.Array]:
        return {
            name: jnp.zeros((1,) if site.is_of_rows else site.shape)
            for name, site in self.latents.items()
        }

    def distributions(self, numbers: Any, rows: Any) -> dict[str, Any]:
        """Of every site, without its axes."""
        positive = self.positive
        values = {
            name: jnp.exp(value) if name in positive else value for name, value in numbers.items()
        }
        sites = self.model.sites(values, rows, self.held)
        return {name: base_of(sites[name]["fn"]) for name in self.latents}

    def priors(self) -> dict[str, Prior]:
        """Nothing is computed but constants."""
        kinds: dict[str, type] = {}
        kept: list[Any] = []

        def look(numbers: Any, rows: Any) -> Any:
            found = {}
            for name, fn in self.distributions(numbers, rows).items():
                kinds[name] = type(fn)
                leaves = [jnp.asarray(leaf) for leaf in jax.tree.leaves(fn)]
                is_normal = kinds[name] is distributions.Normal
                names = ("loc", "scale") if is_normal else ()
                found[name] = leaves, {each: jnp.asarray(getattr(fn, each)) for each in names}
            return found

        def run(example: Any) -> None:
            kept.append(evaluate(look, self.zeros(), as_one_row(example)))

        jax.eval_shape(run, self.example)
        return {
            name: Prior(
                kinds[name],
                parameters,
                all(leaf.kind == CONSTANT for leaf in leaves),
                kinds[name] is distributions.ImproperUniform and self.latents[name].is_real,
            )
            for name, (leaves, parameters) in kept[-1].items()
        }

    def scale_of(self, name: str) -> str | None:
        """The site that is the standard deviation of a normal one, for all of its entries; None
        where it is a function of sites. Its logarithm is known to be affine in all of them.
        """

        def log_scale(numbers: Any, example: Any) -> jax.Array:
            def look(numbers: Any, rows: Any) -> Any:
                return jnp.asarray(self.distributions(numbers, rows)[name].scale)

            return evaluate(look, numbers, as_one_row(example)).value

        at_zero = np.asarray(jax.jit(log_scale)(self.zeros(), self.example))
        slopes = jax.jit(jax.jacobian(log_scale))(self.zeros(), self.example)
        seen = {other: np.asarray(slope) for other, slope in slopes.items() if np.any(slope != 0.0)}
        if np.any(at_zero != 0.0) or len(seen) != 1:
            return None
        ((scale, slope),) = seen.items()
        return scale if scale in self.positive and np.all(slope == 1.0) else None


def roles_of(
    model: NumpyroModel, held: Any, latents: dict[str, LatentSite], example: Any
) -> list[SiteRoles]:
    """What the sites may be, to be tried one after the other: a standard normal may be of any scale
    that is left. None where there are no effects, or a site is nothing that a mixed model has.
    """
    sites = OneRowModel(model, held, latents, example)
    positive = sites.positive
    if not positive or any(latents[name].shape for name in positive):
        return []
    priors = sites.priors()
    flat = [name for name in latents if name not in positive and priors[name].is_flat]
    normals = [name for name in latents if name not in positive and name not in flat]
    if any(priors[name].kind is not distributions.Normal for name in normals):
        return []
    if not all(priors[name].is_fixed for name in positive):
        return []
    centred = {
        name: sites.scale_of(name)
        for name in normals
        if priors[name].parameters["scale"].kind == LOG_AFFINE
    }
    rest = [name for name in normals if name not in centred]
    if any(priors[name].parameters["scale"].kind not in FIXED for name in rest):
        return []
    if None in centred.values() or len(set(centred.values())) < len(centred):
        return []
    effects = [
        EffectSite(name, str(scale), _size(latents[name]), False, latents[name].is_of_rows)
        for name, scale in centred.items()
    ]
    left = [name for name in positive if name not in centred.values()]
    standard = [name for name in rest if _is_standard(priors[name], latents[name])]
    found = []
    for chosen in _pairings(standard, left):
        own = [
            EffectSite(name, scale, _size(latents[name]), True, latents[name].is_of_rows)
            for name, scale in chosen
        ]
        noise = [name for name in left if name not in {scale for _, scale in chosen}]
        given = [name for name in rest if name not in {name for name, _ in chosen}]
        coefficients = [name for name in latents if name in given or name in flat]
        is_whole = not any(latents[name].is_of_rows for name in flat) and all(
            priors[name].parameters["loc"].kind in FIXED and not latents[name].is_of_rows
            for name in given
        )
        all_effects = (*effects, *own)
        if len(noise) > 1 or not coefficients or not all_effects or not is_whole:
            continue
        if all(len(latents[effect.name].shape) == 1 for effect in all_effects):
            found.append(SiteRoles(tuple(coefficients), all_effects, noise[0] if noise else None))
    return found


def _size(site: LatentSite) -> int:
    return int(np.prod(site.shape))


def _is_standard(prior: Prior, site: LatentSite) -> bool:
    values = [prior.parameters[name] for name in ("loc", "scale")]
    if len(site.shape) != 1 or any(each.kind != CONSTANT for each in values):
        return False
    loc, scale = (np.asarray(each.value) for each in values)
    return bool(np.all(loc == 0.0) and np.all(scale == 1.0))


def _pairings(standard: list[str], scales: list[str]) -> list[list[tuple[str, str]]]:
    """Every way to give some of the standard sites a scale of their own, most pairs first."""
    found: list[list[tuple[str, str]]] = []
    for count in range(min(len(standard), len(scales)), -1, -1):
        for names in combinations(standard, count):
            for chosen in permutations(scales, count):
                found.append(list(zip(names, chosen, strict=True)))
                if len(found) == MOST_PAIRINGS:
                    return found
    return found
