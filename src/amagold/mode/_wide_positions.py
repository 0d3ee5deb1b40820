"""Positions far apart, to search for modes from: as wide as the prior where it has a width, else as
wide as is usual.
"""

from typing import NamedTuple

import jax
import numpy as np

from amagold.core import trees
from amagold.core.array_types import Float64
from amagold.core.shapes import HostVector, Position, RandomKey
from amagold.mode._newton import descend, moved, point_at
from amagold.target import Density, Posterior, Target

UNKNOWN = 4.0  # times 1 + |theta|: how far a parameter may be from `init` when no prior says so
# every other position stays nearer, for posteriors that are much narrower than their prior
NARROWER = 0.25
MAX_REDRAWS = 20  # halvings of the distance from the centre


class WidePositions(NamedTuple):
    """Positions far apart, and how far each parameter's values are."""

    positions: list[Position]
    scales: HostVector


def wide_positions(target: Target, init: Position, key: RandomKey, count: int) -> WidePositions:
    """So many positions inside the domain; each coordinate's values are spread evenly over its
    distribution.

    Args:
      target: an `amagold.Posterior` or `amagold.Density`.
      init: the centre, where the prior has none.
      key: a random key.
      count: how many.
    """
    center, scales = _prior_widths(target, init)
    normals = _stratified(
        np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel()), count, len(scales)
    )
    normals[1::2] *= NARROWER
    positions = []
    for row in normals:
        for attempt in range(MAX_REDRAWS):
            position = moved(center, 0.5**attempt * scales * row)
            # a density is tried whole; of data a search will tell
            if isinstance(target, Posterior) and not bool(target.is_inside(position)):
                continue
            if isinstance(target, Posterior) or point_at(target, position).is_finite:
                positions.append(position)
                break
    return WidePositions(positions, scales)


def _prior_widths(target: Target, init: Position) -> tuple[Position, HostVector]:
    """The centre and each parameter's width of the prior's Gaussian approximation; of an improper
    one those of `init`.
    """
    usual = UNKNOWN * (1.0 + np.abs(trees.known_numbers(init)))
    if not isinstance(target, Posterior):
        return init, usual
    found = descend(Density(target.smooth_log_prior, target.domain), init)
    if not found.is_converged:
        return init, usual
    return found.end.position, np.sqrt(np.diag(np.linalg.inv(found.end.hessian)))


def _stratified(
    generator: np.random.Generator, count: int, size: int
) -> Float64[np.ndarray, "{count} {size}"]:
    """Normal numbers, each column with one in every part of equal probability, for even and odd
    rows apart.
    """
    from scipy.special import ndtri  # late, because it is slow to load

    rows = np.empty((count, size))
    for offset in (0, 1):
        part = len(range(offset, count, 2))
        places = np.argsort(generator.random((part, size)), axis=0) + generator.random((part, size))
        rows[offset::2] = ndtri(places / max(1, part))
    return rows
