"""How a ratio is measured: both sides in turns, so that a busy machine slows neither alone."""

import time
from collections.abc import Callable
from typing import NamedTuple


class Measurement(NamedTuple):
    """One row's figure, the seconds that compilation took before it (None where nothing is
    compiled), and what went into the figure.
    """

    ratio: float
    compile_seconds: float | None = None
    details: str = ""


class Benchmark(NamedTuple):
    """One row of the table. `bound` is what the ratio should reach, from above or from below; a
    long one runs only when it is named.
    """

    name: str
    compared: str
    bound: float
    at_least: bool
    measure: Callable[[float], Measurement]
    is_long: bool = False

    def is_met(self, ratio: float) -> bool:
        return ratio >= self.bound if self.at_least else ratio <= self.bound


class NoRatioError(Exception):
    """There is nothing to divide by on this machine, or the two sides do not do the same thing."""


def seconds_of(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def in_turns(
    one: Callable[[], float], other: Callable[[], float], seconds: float, most: int = 10_000
) -> list[tuple[float, float]]:
    """Figures of both sides, measured alternately until the time is up, at least twice."""
    pairs: list[tuple[float, float]] = []
    start = time.perf_counter()
    while len(pairs) < 2 or (len(pairs) < most and time.perf_counter() - start < 2 * seconds):
        pairs.append((one(), other()))
    return pairs
