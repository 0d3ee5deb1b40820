"""A mixed model that was read off a NumPyro model must have its density."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.compiling import ONCE, jit
from amagold.data import InMemory
from amagold.interop._mixed_sites import MixedSites, MixedSiteTransform
from amagold.interop._one_row import as_one_row, is_inside, log_probabilities
from amagold.target._effects_prior import EffectsPrior
from amagold.target._group_effects import GroupedExample, GroupedLikelihood

TOLERANCE = 2e-3  # of a log density, beside that much of one
WIDTHS = 0.0, 0.1, 1.0  # of the places about the start, at which densities are compared


@trees.record()
class MixedParts:
    """What a `Posterior` is made of."""

    likelihood: GroupedLikelihood
    prior: EffectsPrior
    data: GroupedExample
    init: dict[str, Any]
    transform: MixedSiteTransform
    kept: Any  # the rows that count, where some do not


def agrees(parts: MixedParts, sites: MixedSites, examples: InMemory) -> bool:
    """Whether log densities differ from the model's by the same at several places: of each row, and
    of all that is outside the plate.
    """
    random = np.random.default_rng(0)
    of_rows, outside = [], []
    for width in WIDTHS:
        position = {
            name: np.float32(value + width * random.uniform(-1.0, 1.0, np.shape(value)))
            for name, value in parts.init.items()
        }
        found = _compared(parts, sites, position, examples.arrays)
        ours, theirs, our_prior, their_prior = map(np.asarray, found)
        if not (np.isfinite(our_prior) and np.isfinite(their_prior)):
            return False
        of_rows.append((ours, theirs))
        outside.append((our_prior, their_prior))
    first, *others = of_rows
    is_known = np.zeros(len(first[0]), bool)
    for ours, theirs in others:
        gap = (ours - first[0]) - (theirs - first[1])
        size = 1.0 + np.abs(theirs) + np.abs(first[1])
        is_finite = np.isfinite(theirs) & np.isfinite(first[1])
        if np.any(is_finite & ~(np.abs(gap) <= TOLERANCE * size)):
            return False
        is_known |= is_finite
    gaps = [abs(ours - theirs - outside[0][0] + outside[0][1]) for ours, theirs in outside]
    size = 1.0 + max(abs(theirs) for _, theirs in outside)
    return bool(is_known.all() and max(gaps) <= TOLERANCE * size)


@jit(ONCE)
def _compared(parts: Any, sites: MixedSites, position: Any, arrays: Any) -> Any:
    """Log densities of rows and of what is outside the plate, ours and the model's, of positions of
    the mixed model.
    """
    model, roles = sites.model, sites.roles
    numbers = sites.numbers_of(position)

    def of_model(number: jax.Array, example: Any) -> jax.Array:
        found = sites.sites(sites.of_row(numbers, number), as_one_row(example))
        return _total(found, lambda site: is_inside(site, model.plate))

    own = jax.vmap(parts.likelihood, (None, 0))(position, parts.data)
    their_rows = jax.vmap(of_model)(jnp.arange(len(jax.tree.leaves(arrays)[0])), arrays)
    if parts.kept is not None:
        their_rows = their_rows[parts.kept]
    first = jax.tree.map(lambda leaf: leaf[:1], arrays)
    their_prior = _total(
        sites.sites(sites.of_row(numbers, 0), first), lambda site: not is_inside(site, model.plate)
    )
    # of the logarithms of scales, and of effects in place of standard normals
    their_prior += sum(jnp.sum(numbers[name]) for name in roles.scales)
    our_prior = parts.prior(position)
    for effect, form, factor in zip(roles.effects, sites.forms, parts.prior.factors, strict=True):
        log_scale = jnp.reshape(numbers[effect.scale], ())
        if not effect.is_of_rows:
            their_prior -= effect.num_levels * log_scale * effect.is_standard
            continue
        scales = parts.prior.scales_of(position, factor.form)
        our_prior -= parts.prior.of_effects(position, form, *scales)
        normal = jnp.reshape(position[form.name], -1) * jnp.exp(-log_scale)
        of_each = -0.5 * normal**2 - log_scale * (not effect.is_standard)
        own = own + (of_each if parts.kept is None else of_each[parts.kept])
    return own, their_rows, our_prior, their_prior


def _total(sites: dict[str, Any], is_chosen: Any) -> jax.Array:
    chosen = [site for site in sites.values() if site["type"] == "sample" and is_chosen(site)]
    return sum((jnp.sum(log_probabilities(site)) for site in chosen), start=jnp.zeros(()))
