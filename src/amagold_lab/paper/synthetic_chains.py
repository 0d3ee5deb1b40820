"""Chains on the paper's densities without data: double well, Dist1 and Dist2, drawn in segments
that are counted and dropped.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import jax
import numpy as np

from amagold.gradients import noisy
from amagold.models._double_well import double_well, log_density as double_well_log_density
from amagold.models._synthetic import dist1, dist1_log_density, dist2, dist2_log_density
from amagold.runner import run_chunks, start_chains
from amagold.runner._block import Kept
from amagold.samplers import Sampler, amagold, hmc, l2mc, sghmc
from amagold.target import Density
from amagold_lab.paper.histograms import LEAST_MASS, Cells, cells_of

FRICTION = 0.25
NUM_STEPS = 10
NOISE = 1.0  # standard deviation of the gradients' error


class SyntheticDensity(NamedTuple):
    """A density and the box whose cells its draws are counted in."""

    density: Callable[[], Density]
    log_density: Callable[[Any], Any]
    low: tuple[float, ...]
    high: tuple[float, ...]
    shape: tuple[int, ...]


PROBLEMS = {
    "double well": SyntheticDensity(double_well, double_well_log_density, (-6.0,), (5.0,), (110,)),
    "Dist1": SyntheticDensity(dist1, dist1_log_density, (-4.0, -8.0), (14.0, 8.0), (45, 40)),
    "Dist2": SyntheticDensity(dist2, dist2_log_density, (-6.0, -6.0), (6.0, 6.0), (40, 40)),
}


@cache
def cells_for(name: str) -> Cells:
    problem = PROBLEMS[name]
    return cells_of(problem.log_density, problem.low, problem.high, problem.shape)


def described(problem: str) -> dict[str, Any]:
    """What every run on a problem depends on beside its own settings."""
    cells = [PROBLEMS[problem].low, PROBLEMS[problem].high, PROBLEMS[problem].shape, LEAST_MASS]
    return {
        "problem": problem,
        "cells": cells,
        "friction": FRICTION,
        "num_steps": NUM_STEPS,
        "noise": NOISE,
    }


def make_sampler(method: str, problem: str, step_size: float) -> Sampler:
    """A method with the paper's settings: T = 10, friction 0.25, gradient noise N(0, I) for the
    stochastic ones, a fresh momentum.
    """
    target = PROBLEMS[problem].density()
    if method == "HMC":
        return hmc(target, step_size=step_size, num_steps=NUM_STEPS)
    if method == "L2MC":
        return l2mc(target, step_size=step_size, friction=FRICTION, num_steps=NUM_STEPS)
    make = {"AMAGOLD": amagold, "SGHMC": sghmc}[method]
    return make(
        target, step_size=step_size, friction=FRICTION, num_steps=NUM_STEPS, gradient=noisy(NOISE)
    )


class SegmentDraws(NamedTuple):
    """Some draws of every chain, with axes (draw, chain, ...)."""

    position: np.ndarray
    acceptance_rate: np.ndarray


def segments(
    sampler: Sampler, key: jax.Array, num_chains: int, length: int, count: int
) -> Iterator[SegmentDraws]:
    """`count` segments of `length` draws of each chain, all chains from zero. Equal segments
    compile once.
    """
    start_key, run_key = jax.random.split(key)
    init = np.asarray(sampler.target.init, np.float32)
    states = start_chains(sampler, np.broadcast_to(init, (num_chains, *init.shape)), start_key)
    waiting: list[Kept] = []
    for number in range(count):
        pieces = []
        for latest, kept in run_chunks(sampler, run_key, states, length, first=number * length):
            states = latest
            pieces.append(kept)
        # the next segment is under way while this one is counted
        yield from _on_host(waiting)
        waiting = pieces
    yield from _on_host(waiting)


def _on_host(pieces: list[Kept]) -> Iterator[SegmentDraws]:
    if pieces:
        join = lambda values: np.concatenate([np.asarray(value) for value in values])  # noqa: E731
        yield SegmentDraws(
            join([piece.position for piece in pieces]),
            join([piece.info.acceptance_rate for piece in pieces]),
        )


class Counted(NamedTuple):
    """What is left of a run."""

    counts: np.ndarray  # (chain, cell)
    acceptance: float


def count_draws(
    sampler: Sampler,
    problem: str,
    key: jax.Array,
    num_chains: int,
    num_samples: int,
    num_burn_in: int,
    segment: int,
) -> Counted:
    """Run chains and count their draws after the burn-in; both are whole numbers of segments."""
    cells = cells_for(problem)
    counts = np.zeros((num_chains, len(cells.masses)), np.int64)
    rates = []
    skipped = num_burn_in // segment
    for number, drawn in enumerate(
        segments(sampler, key, num_chains, segment, skipped + num_samples // segment)
    ):
        if number >= skipped:
            counts += cells.count_draws(drawn.position)
            rates.append(drawn.acceptance_rate.mean(dtype=np.float64))
    return Counted(counts, float(np.mean(rates)))
