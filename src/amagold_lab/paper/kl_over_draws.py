"""The KL divergence of a chain's first n draws, as n grows."""

from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from amagold_lab.paper.synthetic_chains import cells_for, make_sampler, segments


def places(first: int, last: int, per_decade: int = 8) -> list[int]:
    """Numbers of draws, evenly on a logarithmic scale, first and last included."""
    count = round(per_decade * np.log10(last / first)) + 1
    return sorted({round(value) for value in np.geomspace(first, last, count)})


def kl_over_draws(
    method: str,
    problem: str,
    step_size: float,
    key: jax.Array,
    num_chains: int,
    iterations: Sequence[int],
    segment: int,
) -> dict[str, Any]:
    """The KL of each chain's first n draws, for every n of `iterations`, and the acceptance. No
    draw is dropped.
    """
    cells = cells_for(problem)
    counts = np.zeros((num_chains, len(cells.masses)), np.int64)
    divergences: list[list[float]] = []
    rates = []
    done = 0
    for drawn in segments(
        make_sampler(method, problem, step_size),
        key,
        num_chains,
        segment,
        -(-iterations[-1] // segment),
    ):
        rates.append(drawn.acceptance_rate.mean(dtype=np.float64))
        cuts = [place - done for place in iterations[len(divergences) :] if place <= done + segment]
        start = 0
        for cut in cuts:
            counts += cells.count_draws(drawn.position[start:cut])
            divergences.append(cells.symmetric_kl(counts).tolist())
            start = cut
        counts += cells.count_draws(drawn.position[start:])
        done += segment
    return {"kl": divergences, "acceptance": float(np.mean(rates))}


def reached(
    iterations: Sequence[int], divergences: Sequence[Sequence[float]], level: float
) -> float:
    """After how many draws the mean KL has come down to the level, between two places on
    logarithmic scales; the last if it never has.
    """
    means = np.log(np.mean(divergences, axis=1))
    below = np.flatnonzero(means <= np.log(level))
    if not below.size:
        return float(iterations[-1])
    at = int(below[0])
    if at == 0:
        return float(iterations[0])
    part = (means[at - 1] - np.log(level)) / (means[at - 1] - means[at])
    return float(
        np.exp(np.log(iterations[at - 1]) + part * np.log(iterations[at] / iterations[at - 1]))
    )
