"""Bayesian logistic regression of Section 5.2: the two posteriors, their true means, and chains of
which only running sums are kept.
"""

import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import jax
import numpy as np

from amagold.datasets import australian, heart
from amagold.models import logistic
from amagold.runner._chains import start_chains
from amagold.runner._chunked_run import run_chunks
from amagold.samplers import Sampler, amagold, hmc, l2mc, sghmc
from amagold.sampling._advice import SamplingWarning
from amagold.sampling._run import Run
from amagold.sampling._sample import sample
from amagold.target import Posterior

PRIOR_SCALE = 1.0
TABLES = {"australian": (australian, 32), "heart": (heart, 16)}  # with the paper's batch sizes
NUM_STEPS, FRICTION = 10, 0.25
WARMUP = 500
MAKERS: dict[str, Callable[..., Sampler]] = {
    "AMAGOLD": amagold,
    "SGHMC": sghmc,
    "HMC": hmc,
    "L2MC": l2mc,
}
PAPERS_RANGE = (1e-6, 5e-3)


class SegmentSums(NamedTuple):
    """What is kept of a stretch of draws."""

    total: np.ndarray  # sum of the positions, by chain
    squares: np.ndarray  # sum of their squares
    acceptance: float
    seconds: float  # of the clock on the wall
    processor: float  # seconds that the process computed, over all cores
    positions: Any  # of the chains at its end


def posterior(table: str) -> Posterior:
    """With standardised predictors, an intercept, and independent normal priors."""
    data = TABLES[table][0]()
    return logistic(data.X, data.y, prior_scale=PRIOR_SCALE)


def make_sampler(method: str, table: str, step_size: float) -> Sampler:
    """A method with the paper's T, friction and batch size; all of them draw the momentum
    afresh.
    """
    more: dict[str, Any] = {} if method == "HMC" else {"friction": FRICTION}
    if method in ("AMAGOLD", "SGHMC"):
        more["batch_size"] = TABLES[table][1]
    return MAKERS[method](posterior(table), step_size=step_size, num_steps=NUM_STEPS, **more)


def segments(
    sampler: Sampler,
    key: jax.Array,
    positions: Any,
    length: int,
    count: int,
    compile_first: bool = False,
) -> Iterator[SegmentSums]:
    """A run cut into stretches of one length, which share one compiled program.

    Args:
      positions: where the chains start, stacked.
      length: draws in a segment.
      count: segments.
      compile_first: whether to run the first segment once for nothing, so that the times hold no
        compilation.
    """
    start_key, run_key = jax.random.split(key)
    states = start_chains(sampler, positions, start_key)
    if compile_first:
        for latest, _ in run_chunks(sampler, run_key, states, length):
            jax.block_until_ready(latest)
    for number in range(count):
        begin, begin_computing = time.perf_counter(), time.process_time()
        total, squares, rates = np.zeros(states.position.shape), np.zeros(states.position.shape), []
        for latest, kept in run_chunks(sampler, run_key, states, length, first=number * length):
            states = latest
            drawn = np.asarray(kept.position)
            total += drawn.sum(axis=0, dtype=np.float64)
            squares += np.square(drawn).sum(axis=0, dtype=np.float64)
            rates.append(np.asarray(kept.info.acceptance_rate).sum(dtype=np.float64))
        acceptance = float(np.sum(rates)) / (length * len(total))
        spent = time.perf_counter() - begin, time.process_time() - begin_computing
        yield SegmentSums(total, squares, acceptance, *spent, states.position)


def run_planned(table: str, num_chains: int, num_samples: int, seed: int) -> Run:
    """`amagold.sample` as it plans itself: full-batch HMC with a whitening mass matrix."""
    with warnings.catch_warnings():
        # the Monte Carlo error is reported, however few the draws
        warnings.simplefilter("ignore", SamplingWarning)
        return sample(posterior(table), num_samples, WARMUP, num_chains, seed=seed, progress=False)


def find_truth(table: str, num_chains: int, num_samples: int, seed: int) -> dict[str, Any]:
    """The posterior mean from a long exact run, with the variance that Monte Carlo leaves in it."""
    run = run_planned(table, num_chains, num_samples, seed)
    draws = np.asarray(run.posterior["theta"].values, np.float64)
    return {
        "mean": draws.mean(axis=(0, 1)).tolist(),
        "sd": draws.std(axis=(0, 1)).tolist(),
        "variance": (draws.mean(axis=1).var(axis=0, ddof=1) / num_chains).tolist(),
        "draws": num_chains * num_samples,
        "label": run.label,
    }
