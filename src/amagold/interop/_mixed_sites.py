"""Values of a NumPyro model's sites as positions of a mixed model, and back.

coefficients b        theta, one after the other
scales s              log s
centred effects a     u = a - loc, loc as the model makes it of the sites before
standard effects a    u = a s
"""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from numpyro import handlers

from amagold.core import trees
from amagold.interop._one_row import NumpyroModel, Site, as_one_row
from amagold.interop._site_roles import SiteRoles, base_of
from amagold.interop._site_values import of_draws
from amagold.target._effects_prior import FactorForm
from amagold.target._group_effects import FIXED, NOISE, scale_name

Shapes = tuple[tuple[str, tuple[int, ...]], ...]


@trees.record(static=("model", "roles", "shapes", "forms"))
class MixedSites:
    """The sites of a model by what they are in a mixed one."""

    model: NumpyroModel
    held: Any
    roles: SiteRoles
    shapes: Shapes  # of the coefficients
    forms: tuple[FactorForm, ...]  # of the effects, which a position may call otherwise

    @classmethod
    def of(cls, model: NumpyroModel, held: Any, roles: SiteRoles, latents: Any) -> "MixedSites":
        shapes = tuple((name, latents[name].shape) for name in roles.coefficients)
        taken = {FIXED, NOISE, *(scale_name(effect.name) for effect in roles.effects)}
        forms = tuple(
            FactorForm(
                f"effects of {effect.name}" if effect.name in taken else effect.name,
                effect.num_levels,
                1,
                False,
            )
            for effect in roles.effects
        )
        return cls(model, held, roles, shapes, forms)

    def with_columns(self, has_columns: list[bool]) -> "MixedSites":
        """Where effects are times a column, a position holds a vector of one for each level."""
        forms = tuple(
            form._replace(is_vector=has_column)
            for form, has_column in zip(self.forms, has_columns, strict=True)
        )
        return dataclasses.replace(self, forms=forms)

    @property
    def num_coefficients(self) -> int:
        return sum(int(np.prod(shape)) for _, shape in self.shapes)

    def coefficients(self, theta: jax.Array) -> dict[str, jax.Array]:
        """By their sites."""
        found, start = {}, 0
        for name, shape in self.shapes:
            size = int(np.prod(shape))
            found[name] = jnp.reshape(theta[start : start + size], shape)
            start += size
        return found

    def theta(self, values: dict[str, Any]) -> jax.Array:
        """One after the other."""
        return jnp.concatenate([jnp.ravel(jnp.asarray(values[name])) for name, _ in self.shapes])

    def at_zero(self) -> dict[str, jax.Array]:
        """Numbers of all sites, as a trace is given them, with one row in the data plate."""
        found = dict(self.coefficients(jnp.zeros(self.num_coefficients)))
        for effect in self.roles.effects:
            found[effect.name] = jnp.zeros(1 if effect.is_of_rows else effect.num_levels)
        return found | {name: jnp.zeros(()) for name in self.roles.scales}

    def sites(self, numbers: dict[str, Any], rows: Any) -> dict[str, Site]:
        """The model where coefficients are as given, scales have these logarithms, centred effects
        are so far from their means, and standard ones are so many standard deviations.
        """
        centred = {effect.name for effect in self.roles.effects if not effect.is_standard}

        def value_of(site: Site) -> Any:
            name = site["name"]
            if name not in numbers or site["type"] != "sample":
                return None
            value = jnp.asarray(numbers[name])
            if name in centred:
                return base_of(site["fn"]).loc + value
            return jnp.exp(value) if name in self.roles.scales else value

        arguments, keywords = self.model.form.call(rows, self.held)
        substituted = handlers.substitute(self.model.of_rows(), substitute_fn=value_of)
        return handlers.trace(substituted).get_trace(*arguments, **keywords)

    def numbers_of(self, position: dict[str, Any]) -> dict[str, Any]:
        """Of a position of the mixed model."""
        found = dict(self.coefficients(position[FIXED]))
        for effect, form in zip(self.roles.effects, self.forms, strict=True):
            log_scale = jnp.reshape(position[scale_name(form.name)], ())
            effects = jnp.reshape(position[form.name], (effect.num_levels,))
            found[effect.scale] = log_scale
            found[effect.name] = effects * jnp.exp(-log_scale) if effect.is_standard else effects
        if self.roles.noise is not None:
            found[self.roles.noise] = position[NOISE]
        return found

    def of_row(self, numbers: dict[str, Any], row: Any) -> dict[str, Any]:
        """The numbers as one row sees them, of effects of rows its own."""
        inside = {effect.name for effect in self.roles.effects if effect.is_of_rows}
        return {
            name: jnp.reshape(value[row], (1,)) if name in inside else value
            for name, value in numbers.items()
        }


@trees.record()
class ToSites:
    """Values of the latent sites at one position of the mixed model."""

    sites: MixedSites
    rows: Any  # all of them where there are effects of rows; else one

    def __call__(self, position: dict[str, jax.Array]) -> dict[str, jax.Array]:
        numbers = self.sites.numbers_of(position)
        roles, rows = self.sites.roles, self.rows
        inside = {effect.name: effect for effect in roles.effects if effect.is_of_rows}
        first = jax.tree.map(lambda leaf: leaf[:1], rows)
        found = self.sites.sites(self.sites.of_row(numbers, 0), first)
        names = (*roles.coefficients, *(effect.name for effect in roles.effects), *roles.scales)
        values = {name: jnp.asarray(found[name]["value"]) for name in names}
        for name, effect in inside.items():
            if effect.is_standard:
                values[name] = numbers[name]
        centred = [name for name, effect in inside.items() if not effect.is_standard]
        if centred:
            count = jnp.arange(inside[centred[0]].num_levels)

            def of_row(number: jax.Array, row: Any) -> list[jax.Array]:
                own = self.sites.sites(self.sites.of_row(numbers, number), as_one_row(row))
                return [jnp.reshape(own[name]["value"], ()) for name in centred]

            values.update(zip(centred, jax.vmap(of_row)(count, rows), strict=True))
        return values


@trees.record()
class FromSites:
    """The position of the mixed model at which latent sites have some values."""

    to_sites: ToSites

    def __call__(self, values: dict[str, jax.Array]) -> dict[str, jax.Array]:
        sites = self.to_sites.sites
        theta = sites.theta(values)
        position: dict[str, jax.Array] = {FIXED: theta}
        if sites.roles.noise is not None:
            position[NOISE] = jnp.log(values[sites.roles.noise])
        for effect, form in zip(sites.roles.effects, sites.forms, strict=True):
            of_level = (1,) if form.is_vector else ()
            scale = jnp.reshape(jnp.log(values[effect.scale]), of_level)
            position[scale_name(form.name)] = scale
            position[form.name] = jnp.zeros((effect.num_levels, *of_level))
        # the means of effects, one level of nesting after the other
        for _ in sites.roles.effects:
            now = self.to_sites(position)
            for effect, form in zip(sites.roles.effects, sites.forms, strict=True):
                away = values[effect.name] - now[effect.name]
                scale = values[effect.scale] if effect.is_standard else 1.0
                step = jnp.reshape(away * scale, position[form.name].shape)
                position[form.name] = position[form.name] + step
        return position


@trees.record(static=("free", "constrained"))
class MixedSiteTransform:
    """From positions of the mixed model to values of the sites, of draws with any leading axes."""

    to_sites: ToSites
    from_sites: FromSites
    free: tuple[tuple[str, int], ...]  # how many axes each part of a position has of its own
    constrained: tuple[tuple[str, int], ...]

    def __call__(self, position: trees.PyTree) -> trees.PyTree:
        return of_draws(self.to_sites, position, self.free)

    def inverse(self, reported: trees.PyTree) -> trees.PyTree:
        """Raises a sentence where a scale is not positive."""
        for name in self.to_sites.sites.roles.scales:
            if not np.all(np.asarray(reported[name]) > 0):
                raise ValueError(f"{name!r} must be above zero; start inside")
        return of_draws(self.from_sites, reported, self.constrained)
