"""Which transitions of the warm-up do what."""

from typing import NamedTuple

from amagold.adaptation._dual_averaging import KEEP, POLISH, SEARCH

# warm-up is cut into this many equal parts, so that stages share one compiled program
NUM_UNITS = 20

# of a warm-up that is tuned between blocks: its start is nearly right, and in short blocks what a
# call costs beside its transitions shows
NUM_BLOCKS = 5


class Stage(NamedTuple):
    """Transitions `start` to `stop`: how the step size moves, and whether draws are collected for
    the mass.
    """

    start: int
    stop: int
    step_size: int
    collects: bool


def make_schedule(num_warmup: int, *, adapts_step: bool, adapts_mass: bool) -> tuple[Stage, ...]:
    """The stages of a warm-up, in order.

    With a mass to find: reach the typical set, a first estimate, a second one from twice the draws,
    then the step size alone.
    """
    search = SEARCH if adapts_step else KEEP
    polish = POLISH if adapts_step else KEEP
    if adapts_mass:
        parts = [
            (0.1, search, False),
            (0.25, search, True),
            (0.6, search, True),
            (0.8, search, False),
            (1.0, polish, False),
        ]
    else:
        parts = [(0.7, search, False), (1.0, polish, False)]
    stages, start, unit = [], 0, num_warmup // NUM_UNITS
    for share, step_size, collects in parts:
        # whole units, the last stage takes what is left
        stop = (
            num_warmup
            if share == 1.0
            else round(share * num_warmup if unit == 0 else round(share * NUM_UNITS) * unit)
        )
        if stop > start:
            stages.append(Stage(start, stop, step_size, collects))
            start = stop
    return tuple(stages)


class SearchStage(NamedTuple):
    """The same of a warm-up that looks for the number of steps too; `tries` is which trial of them
    it is, 0 for none.
    """

    start: int
    stop: int
    step_size: int
    collects: bool
    tries: int


def make_search_schedule(num_warmup: int) -> tuple[SearchStage, ...]:
    """Reach the typical set, three estimates of the mass, each from draws by the one before, then
    trials of few and many steps, trials around the best, and the step size alone.
    """
    parts = [
        (0.1, SEARCH, False, 0),
        (0.2, SEARCH, True, 0),
        (0.3, SEARCH, True, 0),
        (0.55, SEARCH, True, 0),
        (0.6, SEARCH, False, 0),
        (0.7, POLISH, False, 1),
        (0.85, POLISH, False, 2),
        (1.0, POLISH, False, 0),
    ]
    stages, start, unit = [], 0, num_warmup // NUM_UNITS
    for share, step_size, collects, tries in parts:
        stop = num_warmup if share == 1.0 else round(share * NUM_UNITS) * unit
        stages.append(SearchStage(start, stop, step_size, collects, tries))
        start = stop
    return tuple(stages)


def block_length(num_warmup: int, most: int) -> int:
    """The largest piece of up to `most` transitions that fits evenly into every stage."""
    unit = max(1, num_warmup // NUM_UNITS)
    return max(size for size in range(1, unit + 1) if unit % size == 0 and size <= max(1, most))
