"""The quantities by which two sets of draws are compared: mean and spread of every coordinate, and
the energy.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.energy._remembered_energy import Memory, log_density_difference, remember
from amagold.target import Target

# standard deviations beyond which a value counts as this far: means then exist for every target
MOST = 6.0


class Standardisation(NamedTuple):
    """Units: coordinates and energy are measured in standard deviations from a centre, both fixed
    beforehand.
    """

    origin: Memory  # energies are differences from this one's
    centre: jax.Array
    scale: jax.Array
    energy_centre: jax.Array
    energy_scale: jax.Array

    def energy(self, target: Target, memory: Memory) -> jax.Array:
        """U(theta) - U(origin)."""
        return log_density_difference(target, self.origin, memory)


def remember_total(target: Target, like: trees.PyTree, flat: jax.Array) -> Memory:
    """The target at a flattened position, as one precise total: many chains cannot each remember
    every example.
    """
    return remember(target, trees.unflatten_like(flat, like), "total")


def unit_standardisation(target: Target, like: trees.PyTree) -> Standardisation:
    """One that changes nothing, before anything is known."""
    flat = trees.flatten(like)
    return Standardisation(
        remember_total(target, like, flat),
        jnp.zeros_like(flat),
        jnp.ones_like(flat),
        jnp.float32(0.0),
        jnp.float32(1.0),
    )


def measure(
    target: Target, standardisation: Standardisation, flat: jax.Array, memory: Memory
) -> jax.Array:
    """Every quantity at one position: z and z^2 for each coordinate, and the energy."""
    z = _limited((flat - standardisation.centre) / standardisation.scale)
    energy = _limited(
        (standardisation.energy(target, memory) - standardisation.energy_centre)
        / standardisation.energy_scale
    )
    return jnp.concatenate([z, z**2, energy[None].astype(z.dtype)])


def names(like: trees.PyTree) -> list[str]:
    """What `measure` returns, in words."""
    coordinates = []
    for path, leaf in jax.tree_util.tree_leaves_with_path(like):
        label = "position" + jax.tree_util.keystr(path)
        places = np.ndindex(*leaf.shape)
        coordinates += [
            label + (f"[{', '.join(map(str, place))}]" if place else "") for place in places
        ]
    return (
        [f"mean of {name}" for name in coordinates]
        + [f"spread of {name}" for name in coordinates]
        + ["mean of the energy"]
    )


def _limited(values: jax.Array) -> jax.Array:
    """Values cut off at `MOST`; what is not a number counts as far out."""
    return jnp.clip(jnp.nan_to_num(values, nan=MOST, posinf=MOST, neginf=-MOST), -MOST, MOST)
