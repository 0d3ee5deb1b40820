"""Searches for the modes of many parameters, without Hessians: L-BFGS from places far apart."""

import math

import jax
import numpy as np

from amagold.core import trees
from amagold.core.shapes import Position, RandomKey
from amagold.mode._curvature import Curvature, curvature_at
from amagold.mode._mode_search import Mode, find_mode
from amagold.mode._newton import moved
from amagold.mode._regions import Region, energies_at
from amagold.mode._survey_result import APART, Survey, weighed
from amagold.mode._wide_positions import UNKNOWN
from amagold.target import Target

NUM_SEARCHES = 4  # beside the one from `init`
MOST_WORK = 10**7  # parameters times examples: a search over less takes some seconds at most
MOST_PARAMETERS = 4096  # a place to start from keeps a matrix of their square


def survey_of_many(target: Target, init: Position, key: RandomKey) -> Survey:
    """A search from `init`, and from wide positions where that takes little."""
    first = find_mode(target, init)
    size = trees.size(init)
    is_long = size * max(1, target.num_examples) > MOST_WORK or size > MOST_PARAMETERS
    alone = Survey(first, [1.0], [], True, 1)
    if target.has_one_mode or not first.is_converged or is_long:
        return alone
    found: list[tuple[Mode, Curvature]] = [(first, curvature_at(target, first.position))]
    starts = _wide(target, init, key)
    for start in starts:
        mode = find_mode(target, start)
        if mode.is_converged and all(_are_apart(mode, *known) for known in found):
            found.append((mode, curvature_at(target, mode.position)))
    if len(found) == 1:
        return alone._replace(num_searches=1 + len(starts))
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), *(mode.position for mode, _ in found))
    energies = np.asarray(energies_at(target, stacked), np.float64)
    regions = [
        _region(mode, curvature, float(energy))
        for (mode, curvature), energy in zip(found, energies, strict=True)
    ]
    return weighed(first, regions, [region.log_mass for region in regions], 1 + len(starts))


def _wide(target: Target, init: Position, key: RandomKey) -> list[Position]:
    """Positions about `init`, as far as is usual, where the density is positive.

    Each has its mirror image, so that every direction is looked along both ways.
    """
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    scales = UNKNOWN * (1.0 + np.abs(trees.known_numbers(init)))
    steps = scales * generator.normal(size=(NUM_SEARCHES // 2, len(scales)))
    places = [moved(init, sign * step) for step in steps for sign in (1.0, -1.0)]
    energies = energies_at(target, jax.tree.map(lambda *leaves: np.stack(leaves), *places))
    return [
        place
        for place, energy in zip(places, np.asarray(energies), strict=True)
        if math.isfinite(energy)
    ]


def _are_apart(mode: Mode, other: Mode, curvature: Curvature) -> bool:
    """Whether two modes are two, in standard deviations of the other's parameters."""
    away = trees.known_numbers(mode.position) - trees.known_numbers(other.position)
    return bool(np.sum(away**2 * curvature.diagonal) > APART * len(away))


def _region(mode: Mode, curvature: Curvature, energy: float) -> Region:
    """The mode with the Gaussian that the curvature there stands for, each parameter by itself."""
    factor = np.diag(1.0 / np.sqrt(curvature.diagonal))
    return Region(mode.position, trees.known_numbers(mode.position), factor, energy)
