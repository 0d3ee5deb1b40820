"""Memory that is free, given back to the system: allocators keep it for what may come."""

import contextlib
import ctypes
import sys
from collections.abc import Callable, Iterator
from functools import lru_cache

from amagold.core.compiling import forget_programs

_runs_once = [False]


@contextlib.contextmanager
def one_run() -> Iterator[None]:
    """Within it programs are given up after each stage, which has others than the next: for a
    process that makes one run, as those of the command line do.
    """
    before, _runs_once[0] = _runs_once[0], True
    try:
        yield
    finally:
        _runs_once[0] = before


def end_of_stage() -> None:
    """After a part of the preparation, of the run or of its report, whose programs hardly any
    other part needs.
    """
    if _runs_once[0]:
        # what was traced as well as what was compiled: a hundred megabytes together. Who calls one
        # again compiles it again
        forget_programs()
    give_back()


def give_back() -> None:
    """After something large is done with: what comes next needs other sizes, for which what is kept
    would lie idle.
    """
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None:  # which has an allocator of its own
        pyarrow.default_memory_pool().release_unused()
    trim = _trim()
    if trim is not None:
        trim(0)


@lru_cache(maxsize=1)
def _trim() -> Callable[[int], int] | None:
    """glibc's; other libraries give back by themselves, or cannot be asked."""
    if not sys.platform.startswith("linux"):
        return None
    return getattr(ctypes.CDLL(None), "malloc_trim", None)
