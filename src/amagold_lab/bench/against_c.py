"""Leapfrog steps per second of the chunk runner, divided by those of the C loop."""

import time
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from amagold.runner import run_chunks, start_chains
from amagold.samplers import Sampler
from amagold_lab.bench.measure import Measurement, in_turns
from amagold_lab.bench.timed_run import TimedRun, check_runs_agree

NUM_BLOCKS = 20


class ChunkRunner:
    """Chains that go on from run to run, each run timed until its last number is there."""

    def __init__(self, sampler: Sampler, position: Any, num_chains: int, num_samples: int) -> None:
        positions = jax.tree.map(
            lambda leaf: np.broadcast_to(leaf, (num_chains, *np.shape(leaf))), position
        )
        self.sampler, self.num_chains, self.num_samples = sampler, num_chains, num_samples
        self.states = start_chains(sampler, positions, jax.random.key(0))
        self.done = 0

    def run(self) -> TimedRun:
        start = time.perf_counter()
        pieces = []
        for states, kept in run_chunks(
            self.sampler, jax.random.key(1), self.states, self.num_samples, first=self.done
        ):
            self.states = states
            pieces.append(kept)
        jax.block_until_ready(pieces)
        seconds = time.perf_counter() - start
        self.done += self.num_samples
        speed = self.num_samples * self.num_chains * self.sampler.num_steps / seconds
        acceptance = np.concatenate([piece.info.acceptance_rate for piece in pieces])
        position = np.concatenate([_first_number(piece.position) for piece in pieces])
        return TimedRun(speed, _block_means(acceptance), _block_means(position))


def steps_ratio(
    runner: ChunkRunner, c_run: Callable[[int], TimedRun], seconds: float
) -> Measurement:
    """The ratio of the best speeds. `c_run` takes a seed."""
    start = time.perf_counter()
    runner.run()
    first_seconds = time.perf_counter() - start
    ours: list[TimedRun] = []
    theirs: list[TimedRun] = []

    def our_speed() -> float:
        ours.append(runner.run())
        return ours[-1].speed

    def their_speed() -> float:
        theirs.append(c_run(len(theirs) + 1))
        return theirs[-1].speed

    best, best_in_c = np.max(in_turns(our_speed, their_speed, seconds), axis=0)
    check_runs_agree(ours, theirs)
    run_seconds = runner.num_samples * runner.num_chains * runner.sampler.num_steps / best
    return Measurement(float(best / best_in_c), max(0.0, first_seconds - float(run_seconds)))


def _first_number(position: jax.Array) -> np.ndarray:
    """The first coefficient of every draw and chain, which the C loops report too."""
    return np.asarray(position).reshape(*position.shape[:2], -1)[..., 0]


def _block_means(values: np.ndarray) -> np.ndarray:
    """Means over equal blocks of draws, with axes (block, chain)."""
    return np.array(
        [block.mean(axis=0, dtype=np.float64) for block in np.array_split(values, NUM_BLOCKS)]
    )
