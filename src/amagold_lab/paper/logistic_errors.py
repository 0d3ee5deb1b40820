"""How far estimated posterior means are from the true ones: at the end of a run, and as seconds
pass.
"""

from typing import Any

import jax
import numpy as np

from amagold_lab.paper.logistic_chains import make_sampler, posterior, run_planned, segments

POINTS = 60  # of a curve over time


def estimate(
    method: str,
    table: str,
    step_size: float,
    key: jax.Array,
    num_chains: int,
    length: int,
    count: int,
) -> dict[str, Any]:
    """The mean of each chain from 0 and standard deviations over all; the first of `count` + 1
    segments is burn-in.
    """
    start = np.zeros((num_chains, posterior(table).example.predictors.shape[0]), np.float32)
    kept = list(segments(make_sampler(method, table, step_size), key, start, length, count + 1))[1:]
    means = np.sum([stretch.total for stretch in kept], axis=0) / (length * count)
    squares = np.sum([stretch.squares for stretch in kept], axis=0) / (length * count)
    return {
        "means": means.tolist(),
        "sd": np.sqrt(np.maximum(0.0, squares.mean(axis=0) - means.mean(axis=0) ** 2)).tolist(),
        "acceptance": float(np.mean([stretch.acceptance for stretch in kept])),
        "seconds": float(np.sum([stretch.seconds for stretch in kept])),
    }


def errors_of(found: dict[str, Any], truth: dict[str, Any]) -> dict[str, float]:
    """Numbers on the error of the mean over chains, from what `estimate` found.

    error: the mean over coefficients of the squared difference from the truth.
    spread: its standard error, by leaving out one chain after the other.
    noise: what the scatter of the chains makes one expect of the error if there is no bias.
    excess: squared differences over their expectation without bias, averaged over coefficients:
    about 1 without bias. widening: standard deviations over the true ones, geometric mean over
    coefficients.
    """
    means = np.array(found["means"])
    num_chains = len(means)
    exact, own = np.array(truth["mean"]), np.array(truth["variance"])
    off = means.mean(axis=0) - exact
    variance = means.var(axis=0, ddof=1) / num_chains
    without = (means.sum(axis=0) - means) / (num_chains - 1)
    errors = np.square(without - exact).mean(axis=1)
    return {
        "error": float(np.square(off).mean()),
        "spread": float(np.sqrt((num_chains - 1) * errors.var())),
        "noise": float(variance.mean()),
        "excess": float(np.mean(np.square(off) / (variance + own))),
        "widening": float(
            np.exp(np.mean(np.log(np.maximum(found["sd"], 1e-30) / np.array(truth["sd"]))))
        ),
        "acceptance": found["acceptance"],
        "seconds": found["seconds"],
    }


def race(
    method: str,
    table: str,
    step_size: float,
    key: jax.Array,
    truth: dict[str, Any],
    num_chains: int,
    length: int,
    count: int,
) -> dict[str, Any]:
    """The error of one chain's running mean, averaged over chains that run side by side from 0,
    against processor seconds, none dropped.

    Processor seconds, because those of the wall depend on what else the computer does; both are
    kept.
    """
    exact = np.array(truth["mean"])
    total, clock, wall = np.zeros((num_chains, len(exact))), 0.0, 0.0
    found: dict[str, Any] = {"seconds": [], "error": []}
    rates = []
    start = np.zeros(total.shape, np.float32)
    sampler = make_sampler(method, table, step_size)
    for number, stretch in enumerate(
        segments(sampler, key, start, length, count, compile_first=True), 1
    ):
        total += stretch.total
        clock += stretch.processor
        wall += stretch.seconds
        rates.append(stretch.acceptance)
        found["seconds"].append(clock)
        found["error"].append(float(np.square(total / (number * length) - exact).mean()))
    draws = count * length * num_chains
    return found | {
        "acceptance": float(np.mean(rates)),
        "per_draw": clock / draws,
        "wall_per_draw": wall / draws,
    }


def race_planned(
    table: str, truth: dict[str, Any], num_chains: int, num_samples: int, seed: int
) -> dict[str, Any]:
    """The same for `amagold.sample`, which tunes itself first; its warm-up counts, compilation does
    not. Seconds of the wall.
    """
    run = run_planned(table, num_chains, num_samples, seed)
    draws = np.asarray(run.posterior["theta"].values, np.float64)
    counts = np.unique(np.linspace(1, num_samples, POINTS).astype(int))
    means = np.cumsum(draws, axis=1)[:, counts - 1] / counts[:, None]
    warmup, sampling = run.attributes["warmup_time"], run.attributes["sampling_time"]
    return {
        "seconds": (warmup + sampling * counts / num_samples).tolist(),
        "error": np.square(means - np.array(truth["mean"])).mean(axis=(0, 2)).tolist(),
        "acceptance": float(run.sample_stats["acceptance_rate"].mean()),
    }


def seconds_to(race: dict[str, Any], level: float) -> float:
    """When the error first comes down to the level, between two points on logarithmic scales;
    infinite if it never does.
    """
    seconds, errors = np.log(race["seconds"]), np.log(race["error"])
    below = np.flatnonzero(errors <= np.log(level))
    if not below.size:
        return float("inf")
    at = int(below[0])
    if at == 0:
        return float(np.exp(seconds[0]))
    part = (errors[at - 1] - np.log(level)) / (errors[at - 1] - errors[at])
    return float(np.exp(seconds[at - 1] + part * (seconds[at] - seconds[at - 1])))
