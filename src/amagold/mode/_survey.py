"""How many modes there are, as far as searches from places far apart can tell, and how much of the
mass each may hold.

One search finds one mode, and chains that start around it agree with each other whatever lies
elsewhere. So searches begin at wide positions, modes that differ are kept apart, and places on the
way that hold mass which no mode's Gaussian explains are remembered: chains start there too.
"""

import math

import jax
import numpy as np

from amagold.core import trees
from amagold.core.shapes import Position, RandomKey
from amagold.mode._curvature import MODEST
from amagold.mode._mode_search import (
    Mode,
    has_much,
    is_newtons,
    mode_from,
    newton_descent,
    standing_for_all,
)
from amagold.mode._newton import Descent, Point, curved_at, descend, moved
from amagold.mode._regions import Region, energies_at, masses_of, region_at
from amagold.mode._survey_of_many import survey_of_many
from amagold.mode._survey_result import APART, NEGLIGIBLE, Survey, weighed
from amagold.mode._wide_positions import wide_positions
from amagold.target import Target

NUM_SEARCHES, FEWEST_SEARCHES = 16, 5
# examples times squared parameters times passes, after which no further search is begun
WORK = 3 * 10**8
MOST_EXAMPLES = 2**15  # that wide searches look at
FEWEST_EXAMPLES = 2048
TOLERANCE, MAX_ITERATIONS = 1e-3, 40
# squared standard deviations per parameter, that the mode may be off: a draw is off by one. A
# reference need not be the mode, so that a pass over much data is not worth the rest
FINE, ROUGH = 1e-4, 1e-3
# standard deviations beyond its mean, that the squared distance between the same mode of some of
# the data and of all may have
NEARBY = 4.0
# times the wide positions' spread: a longer step might leave the basin that it began in
LONGEST = 0.5
UNEXPLAINED = 1e-2  # of the modes' mass, that may lie where their Gaussians are too low
# in log density, that a Gaussian may be too low by
MARGIN, MARGIN_PER_PARAMETER = math.log(10.0), 0.25
MOST_MODES = 8
# halvings of the way from `init`, and how far below it in log density a start may be beside one for
# each parameter, twice what a Gaussian falls by: `init` may be in a spike, and the mass beside it
MAX_HALVINGS, BELOW = 8, 50.0


def survey(target: Target, init: Position, key: RandomKey) -> Survey:
    """Search for modes from `init` and from wide positions, on some of the data where there are
    many.

    Where the posterior is known to have one mode there is one search, and beyond 256 parameters
    where further ones would take long.
    """
    size = trees.size(init)
    if not is_newtons(target, init):
        return survey_of_many(target, init, key)
    target.check(init)
    first = newton_descent(target, init, ROUGH if has_much(target, init) else FINE, 200)
    if target.has_one_mode and first.is_converged:
        return Survey(mode_from(first, init), [1.0], [region_at(first.end)], True, 1)
    few, weight = _affordable(target, size)
    descents = _search_widely(few, init, key, weight)
    found = _different([each.end for each in descents if each.is_converged])
    if few is not target:
        # each mode of some of the data is near one of all of them, or none
        polished = [
            descend(target, point.position, tolerance=FINE)
            for point in _without_first(found, first, weight)
        ]
        found = [each.end for each in polished if each.is_converged]
    modes = [
        region_at(point)
        for point in _different([first.end] * first.is_converged + found)[:MOST_MODES]
    ]
    nearby = [] if few is not target else _nearby(descents)
    if few is not target and modes:
        # with so many examples each mode is as good as Gaussian
        return weighed(
            mode_from(first, init), modes, [region.log_mass for region in modes], len(descents)
        )
    found_all = _weigh(target, mode_from(first, init), modes, nearby, key, len(descents))
    if found_all.mode.is_converged and found_all.is_explained:
        return found_all
    # the Gaussians at the modes say little, so some chains start from where the user would have
    wide = wide_positions(few, init, key, NUM_SEARCHES).positions[1::2]
    around = [_around(position) for position in (init, *_drawn_in(few, init, wide))]
    return found_all._replace(regions=_in_turn(found_all.regions, around))


def _weigh(
    target: Target,
    mode: Mode,
    modes: list[Region],
    nearby: list[Region],
    key: RandomKey,
    num_searches: int,
) -> Survey:
    """The survey of these modes and places, each with its share of the mass."""
    if not modes + nearby:
        return Survey(mode, [], [], True, num_searches)
    generator = np.random.default_rng(np.asarray(jax.random.key_data(key)).ravel())
    margin = MARGIN + MARGIN_PER_PARAMETER * len((modes + nearby)[0].center)
    found = masses_of(target, modes + nearby, modes, margin, generator)
    own, others = [mass.log_mass for mass in found[: len(modes)]], found[len(modes) :]
    total = max(mass.log_mass for mass in found)
    missed = max(mass.log_unexplained for mass in found)
    is_explained = bool(modes and missed <= math.log(UNEXPLAINED) + max(own))
    by_importance = sorted(
        zip(nearby, others, strict=True), key=lambda pair: -pair[1].log_unexplained
    )
    places = [
        region for region, mass in by_importance if mass.log_mass >= total + math.log(NEGLIGIBLE)
    ]
    found_modes = weighed(mode, modes, own, num_searches)
    regions = _in_turn(found_modes.regions, places)
    return found_modes._replace(regions=regions, is_explained=is_explained)


def _in_turn(modes: list[Region], places: list[Region]) -> list[Region]:
    """Modes and other places one after the other, so that few chains see both."""
    turns = max(len(modes), len(places))
    return [
        region
        for turn in range(turns)
        for group in (modes, places)
        for region in group[turn : turn + 1]
    ]


def _affordable(target: Target, size: int) -> tuple[Target, float]:
    """The target itself, or with some of its examples where searches over all would take long."""
    most = max(FEWEST_EXAMPLES, 10 * size, min(MOST_EXAMPLES, WORK // (50 * size**2)))
    return (target, 1.0) if target.num_examples <= 2 * most else standing_for_all(target, most)


def _search_widely(target: Target, init: Position, key: RandomKey, weight: float) -> list[Descent]:
    """A search from `init` and from each wide position; fewer where they take long and agree."""
    wide = wide_positions(target, init, key, NUM_SEARCHES - 1)
    starts = [init, *wide.positions]
    options = {
        "weight": weight,
        "tolerance": TOLERANCE,
        "max_iterations": MAX_ITERATIONS,
        "longest": LONGEST * wide.scales,
    }
    per_pass = trees.size(init) ** 2 * max(1, target.num_examples)
    descents: list[Descent] = []
    work, known = 0, []
    for start in starts:
        if work >= WORK and len(descents) >= FEWEST_SEARCHES and len(known) <= 1:
            break
        found = descend(target, start, known=known, **options)
        descents.append(found)
        work += 2 * found.num_iterations * per_pass
        if found.is_converged:
            known = _different([*known, found.end])
    return descents


def _different(points: list[Point]) -> list[Point]:
    """One point of each mode, the lowest energy first."""
    kept: list[Point] = []
    for point in sorted(points, key=lambda point: point.energy):
        distances = [_squared_distance(other, point) for other in kept]
        if not kept or min(distances) > APART * len(point.gradient):
            kept.append(point)
    return kept


def _without_first(found: list[Point], first: Descent, weight: float) -> list[Point]:
    """Modes of some of the data without the one that is that of all which was found first: the
    nearest to it, if it is as near as some of the data can tell.
    """
    if not found or not first.is_converged:
        return found
    distances = [_squared_distance(first.end, point) for point in found]
    nearest, size = int(np.argmin(distances)), len(first.end.gradient)
    # in standard deviations of the fewer data, chi-squared with a degree for each parameter
    is_first = distances[nearest] <= weight * (size + NEARBY * math.sqrt(2.0 * size))
    return found[:nearest] + found[nearest + 1 :] if is_first else found


def _squared_distance(mode: Point, point: Point) -> float:
    """In standard deviations of the mode's Gaussian."""
    away = trees.known_numbers(point.position) - trees.known_numbers(mode.position)
    return float(np.sum(np.linalg.solve(curved_at(mode).factor, away) ** 2))


def _drawn_in(target: Target, init: Position, positions: list[Position]) -> list[Position]:
    """Each at the first half, quarter, ... of its way from `init` that is not far below it in log
    density: a chain far out would have the step size of all chains to itself.
    """
    if not positions:
        return []
    here = trees.known_numbers(init)
    places = [
        moved(init, 0.5**halving * (trees.known_numbers(position) - here))
        for position in positions
        for halving in range(MAX_HALVINGS)
    ]
    stacked = jax.tree.map(lambda *leaves: np.stack(leaves), init, *places)
    lowest, *found = np.asarray(energies_at(target, stacked), np.float64)
    is_near = np.reshape(found, (-1, MAX_HALVINGS)) <= lowest + len(here) + BELOW
    # where none is, or `init` has no density, the nearest must do
    chosen = np.where(is_near.any(axis=1), is_near.argmax(axis=1), MAX_HALVINGS - 1)
    return [places[number * MAX_HALVINGS + halving] for number, halving in enumerate(chosen)]


def _around(position: Position) -> Region:
    """A place where nothing is known of the curvature, and a small change of every parameter."""
    center = trees.known_numbers(position)
    return Region(position, center, np.diag(MODEST * (1.0 + np.abs(center))), math.inf)


def _nearby(descents: list[Descent]) -> list[Region]:
    """Where each search came near a mode of its own curvature."""
    points = [each.near for each in descents if each.near is not each.end and each.near.is_finite]
    return [region_at(point) for point in points if curved_at(point).is_clearly_upwards]
