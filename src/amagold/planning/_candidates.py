"""The ways to sample that a plan chooses from."""

import math
from collections.abc import Iterator

import numpy as np

from amagold.planning._candidate import Candidate, Setting
from amagold.planning._quarter_turn import quarter_turn

SMALLEST_BATCH = 16  # below this a step is mostly overhead
MAX_STEPS = 1024  # per trajectory
LONGEST_FULL = 1024
CONTROLLED_BATCHES = (2, 8, 32, 128, 512)
LONGEST_CONTROLLED = 16
TURNS = (1, 2, 3, 4)  # steps of a quarter turn: a posterior that needs more is no Gaussian
CLOSE = 0.97  # a candidate must be this much cheaper to be preferred over an earlier, simpler one


def every_candidate(setting: Setting, fewest_steps: int = 1) -> Iterator[Candidate]:
    """The full gradient first, then minibatches, then control variates, in order of simplicity.

    Args:
      setting: the curvature, noise and costs under one mass.
      fewest_steps: of a trajectory with the full gradient.
    """
    for num_steps in _trajectory_lengths():
        if num_steps >= fewest_steps:
            yield from _usable(setting.candidate(num_steps))
    for num_steps in TURNS if setting.rest is not None else ():
        yield from _usable(quarter_turn(setting, num_steps))
    if setting.noise is None:
        return
    num_examples = setting.costs.num_examples
    for batch_size in _batch_sizes(num_examples):
        per_epoch = num_examples // batch_size
        if per_epoch <= MAX_STEPS:
            yield from _usable(setting.candidate(per_epoch, "epoch", batch_size))
        if 2 * per_epoch <= MAX_STEPS:
            yield from _usable(setting.candidate(2 * per_epoch, "palindrome", batch_size))
    # with independent batches the data per trajectory, T B, decides: one batch size per doubling of
    # T will do
    for batch_size in _batch_sizes(num_examples)[::3]:
        for num_steps in [2**power for power in range(0, int(math.log2(MAX_STEPS)) + 1)]:
            if num_steps * batch_size <= 16 * num_examples:
                yield from _usable(setting.candidate(num_steps, "iid", batch_size))
                if setting.rest is not None:  # here steps are many for the noise's sake
                    yield from _usable(quarter_turn(setting, num_steps, "iid", batch_size))
    yield from _controlled(setting)


def _controlled(setting: Setting) -> Iterator[Candidate]:
    """Control variates with independent batches, and the test over all data or on a few."""
    tests = ("full",) if setting.few is None else ("full", "tuna")
    for order in setting.controlled:
        for batch_size in CONTROLLED_BATCHES:
            for num_steps in (
                length for length in _trajectory_lengths() if length <= LONGEST_CONTROLLED
            ):
                if batch_size < setting.costs.num_examples // 2:
                    for test in tests:
                        yield from _usable(
                            setting.candidate(num_steps, "iid", batch_size, order, test)
                        )
                        if setting.rest is not None and num_steps in TURNS:
                            yield from _usable(
                                quarter_turn(setting, num_steps, "iid", batch_size, order, test)
                            )


def best_of(candidates: list[Candidate]) -> Candidate:
    """The cheapest effective draw; the earlier one where the difference is within what predictions
    can tell.
    """
    best = candidates[0]
    for candidate in candidates[1:]:
        if candidate.cost_per_draw < CLOSE * best.cost_per_draw:
            best = candidate
    return best


def best_of_each_kind(candidates: list[Candidate]) -> list[Candidate]:
    """The best with the full gradient, with each batch plan, and with control variates of each
    order and each test; the cheapest first.
    """

    def kind_of(candidate: Candidate) -> tuple[str, str | None, int | None, str]:
        return candidate.gradient, candidate.batch_plan, candidate.order, candidate.test

    kinds = dict.fromkeys(map(kind_of, candidates))
    chosen = [
        best_of([candidate for candidate in candidates if kind_of(candidate) == kind])
        for kind in kinds
    ]
    return sorted(chosen, key=lambda candidate: candidate.cost_per_draw)


def _usable(candidate: Candidate | None) -> list[Candidate]:
    return [] if candidate is None else [candidate]


def _trajectory_lengths() -> list[int]:
    """1, 2, 3, 4, 5, 6, 8, ...: whole numbers, at most a third apart."""
    return sorted({round(float(value)) for value in np.geomspace(1, LONGEST_FULL, 28)})


def _batch_sizes(num_examples: int) -> list[int]:
    """Powers of two from 16 to half the data."""
    return [
        2**power
        for power in range(int(math.log2(SMALLEST_BATCH)), 31)
        if 2**power <= num_examples // 2
    ]
