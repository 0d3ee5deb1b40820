"""How many steps a trajectory should have: what was tried side by side, and how far each moved the
chains.

The worst coordinate's mean counts, and all coordinates' spread. A chain that one transition moves
by D has the autocorrelation rho = 1 - E[D^2] / (2 Var), and (1 + rho) / (1 - rho) draws make one
effective draw. Trajectories that swing back to where they began move the squares little, so that
both together have their best at about a quarter period of the slowest direction.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.adaptation._moments import Moments, no_moments
from amagold.core import trees

MOST_STEPS = 64
FIRST_STEPS = 8  # before anything was tried
COARSE = (1, 2, 4, 8, 16, 32, 64)
FINE = (0.5, 0.65, 0.8, 1.0, 1.25, 1.5, 2.0)  # times the best of the coarse ones
NUM_TRIED = len(COARSE)
# of the mean over coordinates of (draws per effective draw)^POWER: nearly the worst of them, but
# no single chance
POWER = 6.0
SLOWEST = 0.995  # autocorrelations count as no more
FAR = 1.0  # in the log of the cost, that a neighbour counts as dearer at most
ABOUT = 1.1  # times the least cost, that counts as the same
CALM = 1e-3  # share of divergences, beyond which steps are made smaller
TEST_COST = 0.4  # of a gradient: the density at the end of a trajectory


class LengthSearch(NamedTuple):
    """What was tried, and the sums over transitions and chains."""

    tried: jax.Array  # numbers of steps
    turn: jax.Array  # transitions so far
    num_steps: jax.Array  # outside of the trials
    center: jax.Array  # of each coordinate, that squares are taken about
    num_moves: jax.Array  # of each number of steps
    moves: jax.Array  # summed squared changes, of coordinates and of their squares
    sums: jax.Array  # of coordinates, squares, and the squares of both
    num_draws: jax.Array
    num_divergent: jax.Array  # of the draws
    is_careful: jax.Array  # whether trials before met more divergences than may be


class Learnt(NamedTuple):
    """All that such a warm-up has learnt from its draws."""

    draws: Moments
    slopes: Moments  # of the gradients there
    search: LengthSearch


def nothing_learnt(kind: str | None, size: int) -> Learnt:
    return Learnt(no_moments(kind, size), no_moments(kind, size), no_trials(size))


def no_trials(size: int) -> LengthSearch:
    """Nothing tried yet."""
    fields = (
        np.asarray(COARSE, np.int32),
        np.int32(0),
        np.int32(FIRST_STEPS),
        np.zeros(size, np.float32),
        np.zeros(NUM_TRIED, np.float32),
        np.zeros((NUM_TRIED, 2, size), np.float32),
        np.zeros((2, 2, size), np.float32),
        np.float32(0.0),
        np.float32(0.0),
        np.bool_(False),
    )
    return LengthSearch(*map(jax.device_put, fields))


def begin_trials(search: LengthSearch, tried: tuple[int, ...], center: np.ndarray) -> LengthSearch:
    """These numbers of steps next, with the sums at zero."""
    fresh = no_trials(len(center))
    return fresh._replace(
        tried=jax.device_put(np.asarray(tried, np.int32)),
        num_steps=search.num_steps,
        is_careful=search.is_careful,
        center=jax.device_put(np.asarray(center, np.float32)),
    )


def steps_now(search: LengthSearch, is_trying: jax.Array) -> jax.Array:
    """Of the next transition: in turn, so that nothing that drifts favours any of them."""
    return jnp.where(is_trying, search.tried[search.turn % NUM_TRIED], search.num_steps)


def update(
    search: LengthSearch,
    is_trying: jax.Array,
    before: trees.PyTree,
    after: trees.PyTree,
    is_divergent: jax.Array,
    axis_name: str | None,
) -> LengthSearch:
    """Add the moves of all chains, wherever they run."""

    def seen(positions: trees.PyTree) -> jax.Array:
        away = jax.vmap(trees.flatten)(positions).astype(jnp.float32) - search.center
        return jnp.stack([away, away**2], axis=1)  # chains x 2 x parameters

    def total(values: jax.Array) -> jax.Array:
        values = values.sum(axis=0)
        return values if axis_name is None else jax.lax.psum(values, axis_name)

    here, there = seen(before), seen(after)
    place = search.turn % NUM_TRIED
    added = total(jnp.ones(there.shape[0], jnp.float32))
    tried = search._replace(
        turn=search.turn + 1,
        num_moves=search.num_moves.at[place].add(added),
        moves=search.moves.at[place].add(total((there - here) ** 2)),
        sums=search.sums + total(jnp.stack([there, there**2], axis=1)),
        num_draws=search.num_draws + added,
        num_divergent=search.num_divergent + total(is_divergent.astype(jnp.float32)),
    )
    return trees.where(is_trying & trees.all_finite(tried), tried, search)


def costs(search: LengthSearch) -> np.ndarray:
    """Gradients per effective draw, of about the worst coordinate's mean or of the spread, for
    each number of steps.
    """
    sums, moves = (np.asarray(part, np.float64) for part in (search.sums, search.moves))
    count = max(1.0, float(search.num_draws))
    variances = sums[1] / count - (sums[0] / count) ** 2
    numbers = np.asarray(search.num_moves, np.float64)
    with np.errstate(divide="ignore", invalid="ignore"):
        moved = moves / np.maximum(numbers, 1.0)[:, None, None] / (2.0 * variances)
    moved = np.where(variances > 0.0, moved, 1.0)
    # squares have heavy tails, so that the least of many would be chance: their mean counts
    worst = np.maximum(
        np.mean(_draws(moved[:, 0]) ** POWER, axis=1) ** (1.0 / POWER),
        _draws(moved[:, 1].mean(axis=1)),
    )
    return np.where(numbers > 0.0, (np.asarray(search.tried) + TEST_COST) * worst, np.inf)


def _draws(moved: np.ndarray) -> np.ndarray:
    """That make one effective draw: (1 + rho) / (1 - rho) with 1 - rho = E[D^2] / (2 Var)."""
    share = np.clip(moved, 1.0 - SLOWEST, 1.0)
    return (2.0 - share) / share


def best(search: LengthSearch) -> int:
    """The most steps that are about as cheap as the cheapest: draws of longer trajectories are
    worth more. Neighbours count too, because one alone may be luck.
    """
    found = np.log(costs(search))
    if not np.all(np.isfinite(found)):
        return int(search.num_steps)
    padded = np.concatenate([found[:1], found, found[-1:]])
    # a neighbour may be in step with the posterior, and that says nothing of this one
    one, other = (np.minimum(side, found + FAR) for side in (padded[:-2], padded[2:]))
    smooth = 0.25 * one + 0.5 * found + 0.25 * other
    about = np.flatnonzero(smooth <= smooth.min() + np.log(ABOUT))
    return int(np.asarray(search.tried)[about[-1]])


def meets_walls(search: LengthSearch) -> bool:
    """Whether more of the trials diverged than may."""
    return float(search.num_divergent) > CALM * float(search.num_draws)


def finer(num_steps: int) -> tuple[int, ...]:
    """Numbers of steps about one, to try next."""
    return tuple(int(min(max(1, round(share * num_steps)), MOST_STEPS)) for share in FINE)
