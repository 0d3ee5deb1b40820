"""The slowest parameter, chain by chain."""

from collections.abc import Collection
from typing import Any, NamedTuple

import numpy as np

from amagold.report._chart_scale import AxisTick, scale_of
from amagold.report._parameters import (
    MOST_EFFECTS,
    MOST_PARAMETERS,
    Parameter,
    some_of,
)

MOST_POINTS = 240  # of a chain
MOST_CHAINS = 4


class TraceChart(NamedTuple):
    name: str
    ticks: tuple[AxisTick, ...]  # along the side
    lines: tuple[str, ...]  # points of a polyline in a square of 1000 by 1000, one for each chain
    num_draws: int
    every: int


def trace_of(
    run: Any, parameters: dict[str, list[Parameter]], effects: Collection[str] = ()
) -> TraceChart | None:
    """The trace of the parameter with the fewest effective draws; None of draws that are too few,
    or not finite.
    """
    known = [
        (each.ess_bulk, term, place)
        for term, many in parameters.items()
        for place, each in enumerate(many)
        if np.isfinite(each.ess_bulk)
    ]
    num_draws = run.posterior.sizes["draw"]
    if not known or num_draws < 4:
        return None
    _, term, place = min(known)
    every = max(1, num_draws // MOST_POINTS)
    variable = some_of(run.posterior[term], MOST_EFFECTS if term in effects else MOST_PARAMETERS)
    draws = variable.isel(chain=slice(MOST_CHAINS), draw=slice(None, None, every))
    values = np.asarray(draws, np.float64).reshape(*draws.shape[:2], -1)[:, :, place]
    if not np.isfinite(values).all():
        return None
    scale = scale_of(values.reshape(-1).tolist(), most_ticks=5)
    across = np.linspace(0.0, 1000.0, values.shape[1])
    lines = [
        " ".join(
            f"{x:.0f},{1000.0 - 10.0 * scale.place(value):.0f}"
            for x, value in zip(across, chain, strict=True)
        )
        for chain in values.tolist()
    ]
    return TraceChart(parameters[term][place].name, scale.ticks, tuple(lines), num_draws, every)
