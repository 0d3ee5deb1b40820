"""How long JAX compiled, so that the speed of sampling can be told without it."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import jax

TRACE = "/jax/core/compile/jaxpr_trace_duration"
LOWER = "/jax/core/compile/jaxpr_to_mlir_module_duration"
COMPILE = "/jax/core/compile/backend_compile_duration"


class CompileTime:
    """Seconds spent tracing and compiling while it was watched, in one thread."""

    def __init__(self) -> None:
        self._compiled = 0.0
        self._traced = 0.0
        self._thread = threading.get_ident()

    @property
    def seconds(self) -> float:
        return self._compiled + self._traced

    def hear(self, event: str, seconds: float) -> None:
        if threading.get_ident() != self._thread:
            return
        if event == TRACE:
            # traces are nested: the longest holds the others
            self._traced = max(self._traced, seconds)
        elif event in (LOWER, COMPILE):
            self._compiled += seconds


_watching: list[CompileTime] = []


def _tell(event: str, duration_secs: float, **details: Any) -> None:
    for watcher in _watching:
        watcher.hear(event, duration_secs)


# once for the whole process, because not every version of JAX lets a listener go
jax.monitoring.register_event_duration_secs_listener(_tell)


@contextmanager
def watch_compilation() -> Iterator[CompileTime]:
    """Listen to JAX's own measurements."""
    spent = CompileTime()
    _watching.append(spent)
    try:
        yield spent
    finally:
        _watching.remove(spent)
