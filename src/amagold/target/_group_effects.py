"""Predictors with effects of groups: z_i = x_i . theta + sum_f t_if . u_f[g_f(i)].

Each factor f has a vector u_f[g] of effects for each of its levels g; a row has one level of each
factor, and t_if says what the effects are times: 1 for a random intercept.
"""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.target._linear_bounds import LinearBounds

FIXED = "theta"  # what a position calls the coefficients that all rows share
NOISE = "sigma"  # the logarithm of the noise's scale
TAU = "tau"  # the logarithms of the scales of horseshoe priors


def scale_name(name: str) -> str:
    """What a position calls the log scales of a factor's effects."""
    return f"{name}_sigma"


def correlation_name(name: str) -> str:
    """What it calls the free numbers of their correlations."""
    return f"{name}_correlation"


class GroupedExample(NamedTuple):
    """One row: what it is without its groups, and for each factor its level and its columns."""

    own: Any
    codes: tuple[jax.Array, ...]
    columns: tuple[jax.Array | None, ...]  # None is one column of ones


@dataclass(frozen=True)
class GroupedPredictor:
    """z of positions that are dicts; with noise of unknown scale the vector (z, log s)."""

    fixed: Any  # of the coefficients alone
    names: tuple[str, ...]
    has_noise: bool = False

    def __call__(self, position: dict[str, jax.Array], example: GroupedExample) -> jax.Array:
        z = self.fixed(position[FIXED], example.own)
        for name, code, column in zip(self.names, example.codes, example.columns, strict=True):
            effect = position[name][code]
            z = z + (effect if column is None else jnp.dot(column, effect))
        if self.has_noise:
            return jnp.stack([z, jnp.asarray(position[NOISE], z.dtype)])
        return z


@dataclass(frozen=True)
class OwnTerm:
    """A function of z and of a row without its groups."""

    term: Any

    def __call__(self, z: jax.Array, example: GroupedExample) -> jax.Array:
        return self.term(z, example.own)


@trees.record(static=("predictor", "outcome"))
class GroupedLikelihood:
    """log p(y | x, groups) = outcome(z, y), of rows with groups."""

    predictor: GroupedPredictor
    outcome: Any  # of rows without groups

    @property
    def composition(self) -> tuple[Any, Any]:
        """The predictor and the outcome, of which it is nothing but the composition."""
        return self.predictor, OwnTerm(self.outcome)

    def __call__(self, position: dict[str, jax.Array], example: GroupedExample) -> jax.Array:
        return self.outcome(self.predictor(position, example), example.own)

    def bounds(self) -> LinearBounds | None:
        """Those of the outcome, which does not know of groups."""
        found = self.outcome.bounds(self.predictor)
        if found is None:
            return None
        terms = {
            name: None if getattr(found, name) is None else OwnTerm(getattr(found, name))
            for name in ("scale", "lower_curvature")
        }
        return found._replace(outcome=OwnTerm(self.outcome), **terms)
