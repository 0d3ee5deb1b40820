"""Memory that is free, given back to the system: allocators keep it for what may come."""

import ctypes
import sys
from collections.abc import Callable
from functools import lru_cache


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
