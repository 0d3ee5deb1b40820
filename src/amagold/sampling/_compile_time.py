"""How long JAX compiled, so that the speed of sampling can be told without it."""

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import jax

EVENTS = (
    "/jax/core/compile/jaxpr_trace_duration",
    "/jax/core/compile/jaxpr_to_mlir_module_duration",
    "/jax/core/compile/backend_compile_duration",
)


class CompileTime:
    """Seconds in which this thread traced or compiled while it was watched.

    JAX tells of each piece of work when it ends. Pieces lie within each other, a trace within a
    trace for example, so they are kept as intervals of which none overlaps another.
    """

    def __init__(self) -> None:
        self._intervals: list[tuple[float, float]] = []
        self._thread = threading.get_ident()

    @property
    def seconds(self) -> float:
        return sum(stop - start for start, stop in self._intervals)

    def hear(self, seconds: float) -> None:
        """Something that took so long has ended now."""
        if threading.get_ident() != self._thread:
            return
        stop = time.monotonic()
        start = stop - seconds
        # what began later than this lies within it
        while self._intervals and self._intervals[-1][0] >= start:
            self._intervals.pop()
        if self._intervals:
            start = max(start, self._intervals[-1][1])
        self._intervals.append((start, stop))


_watching: list[CompileTime] = []


def _tell(event: str, duration_secs: float, **details: Any) -> None:
    if event in EVENTS:
        for watcher in _watching:
            watcher.hear(duration_secs)


@cache
def _listen() -> None:
    """Once for the whole process, because not every version of JAX lets a listener go."""
    jax.monitoring.register_event_duration_secs_listener(_tell)


@contextmanager
def watch_compilation() -> Iterator[CompileTime]:
    """Listen to JAX's own measurements."""
    _listen()
    spent = CompileTime()
    _watching.append(spent)
    try:
        yield spent
    finally:
        _watching.remove(spent)
