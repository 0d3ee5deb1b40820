"""Garbage is looked for less often while programs are traced.

Tracing makes hundreds of thousands of small objects that stay. Python looks through all that is new
after every 700 of them, which took a tenth of the time from a call to its first draw.
"""

import contextlib
import gc
import threading
from collections.abc import Iterator

FEWEST_NEW = 50_000  # objects between two looks: some megabytes

_guard = threading.Lock()
_before: list[tuple[int, int, int]] = []  # what was set, for each of those within


@contextlib.contextmanager
def rare_collection() -> Iterator[None]:
    """For the whole process, until the last of those within ends; a process that looks more rarely,
    or never, is left alone.
    """
    with _guard:
        _before.append(_before[0] if _before else gc.get_threshold())
        first, *others = _before[0]
        if 0 < first < FEWEST_NEW:
            gc.set_threshold(FEWEST_NEW, *others)
    try:
        yield
    finally:
        with _guard:
            before = _before.pop()
            if not _before:
                gc.set_threshold(*before)
