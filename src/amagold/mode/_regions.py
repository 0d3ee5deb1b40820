"""Places of a posterior with the Gaussian that fits there, and how much of the mass is really under
it.
"""

import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.core import trees
from amagold.core.array_types import Float, Float64, PyTree
from amagold.core.compiling import ONCE, jit
from amagold.core.shapes import HostMatrix, HostVector, Position, Scalar
from amagold.data import Chunk
from amagold.energy import _chunks as chunks
from amagold.energy._wide_sums import Wide, add_to, zero
from amagold.mode._derivatives import Derivatives
from amagold.mode._newton import Curved, Point, curved_at, moved
from amagold.target import Target

NUM_DRAWS = 32  # of each Gaussian, that its mass is estimated from

Places = Float64[np.ndarray, "places parameters"]
PerPlace = Float64[np.ndarray, " places"]


class Region(NamedTuple):
    """A place, and the Gaussian with the energy, slope and curvature there.

    Args:
      position: the place.
      center: where the Gaussian is highest, over the flattened position; a mode is its own.
      factor: F with |H|^-1 = F F^T.
      energy: U at the centre, as the Gaussian says.
      of_data: the derivatives of all data at the place, where they are known.
    """

    position: Position
    center: HostVector
    factor: HostMatrix
    energy: float
    of_data: Derivatives | None = None

    def draws(self, generator: np.random.Generator) -> Places:
        return self.center + generator.normal(size=(NUM_DRAWS, len(self.center))) @ self.factor.T

    def log_density(self, places: Places) -> PerPlace:
        """-U of the Gaussian, not normalised."""
        away = np.linalg.solve(self.factor, (places - self.center).T)
        return -self.energy - 0.5 * np.sum(away**2, axis=0)

    @property
    def log_mass(self) -> float:
        """Of the Gaussian: -U + (d log 2 pi - log det H) / 2."""
        return (
            -self.energy
            + 0.5 * len(self.center) * math.log(2.0 * math.pi)
            + np.linalg.slogdet(self.factor)[1]
        )


class Mass(NamedTuple):
    """What the posterior holds under a Gaussian, by importance sampling: rarely too much, sometimes
    too little.
    """

    log_mass: float
    log_unexplained: float  # of that, where the modes' Gaussians are clearly too low


def region_at(point: Point) -> Region:
    curved: Curved = curved_at(point)
    step = curved.step(point.gradient)
    # the quadratic U + g . s + s . H s / 2 is lowest at s = -H^-1 g, by g . H^-1 g / 2
    lowest = point.energy + 0.5 * float(point.gradient @ step)
    center = trees.known_numbers(point.position) + step
    return Region(point.position, center, curved.factor, lowest, point.of_data)


def masses_of(
    target: Target,
    regions: list[Region],
    modes: list[Region],
    margin: float,
    generator: np.random.Generator,
) -> list[Mass]:
    """The mass under each region, and what of it the modes do not explain: where -U is above their
    Gaussians by the margin.
    """
    drawn = [region.draws(generator) for region in regions]
    each = [
        (region.position, row) for region, rows in zip(regions, drawn, strict=True) for row in rows
    ]
    stacked = [moved(position, row - trees.known_numbers(position)) for position, row in each]
    energies = np.asarray(
        energies_at(target, jax.tree.map(lambda *leaves: np.stack(leaves), *stacked)), np.float64
    )
    energies = np.where(np.isfinite(energies), energies, np.inf).reshape(len(regions), -1)
    found = []
    for region, rows, energy in zip(regions, drawn, energies, strict=True):
        # log w = -U - log q, with q the Gaussian, normalised
        weights = -energy - (region.log_density(rows) - region.log_mass)
        known = (
            np.logaddexp.reduce([mode.log_density(rows) for mode in modes], axis=0)
            if modes
            else np.full(len(rows), -np.inf)
        )
        is_missed = -energy > known + margin
        found.append(Mass(_log_mean(weights), _log_mean(np.where(is_missed, weights, -np.inf))))
    return found


def _log_mean(weights: PerPlace) -> float:
    return float(np.logaddexp.reduce(weights) - math.log(len(weights)))


@jit(ONCE)
def energies_at(
    target: Target, positions: PyTree[Float[Array | np.ndarray, "places ..."]]
) -> Float[Array, " places"]:
    """U at each of the positions; infinite outside the domain."""

    def energy(position: Position) -> Scalar:
        return jnp.where(target.is_inside(position), _summed(target, position), jnp.inf)

    return jax.lax.map(energy, positions)


def _summed(target: Target, position: Position) -> Scalar:
    def visit(total: Wide, chunk: Chunk) -> Wide:
        return add_to(total, chunk.only_new(-target.log_likelihoods(position, chunk.rows)))

    total = chunks.fold(target, position, visit, zero())
    return total.high + total.low - target.log_prior(position)
