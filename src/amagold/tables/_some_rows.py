"""Frames a part at a time, where they are larger than memory."""

from collections.abc import Callable, Iterator
from typing import Any

from amagold.core.optional_packages import required
from amagold.tables._spooled_rows import spooled

ROWS_AT_ONCE = 2**18


def parts_of(frame: Any, size: int = ROWS_AT_ONCE) -> Iterator[Any]:
    """The rows of a frame, so many at a time."""
    for start in range(0, len(frame), size):
        yield frame[start : start + size]


def filtered(frame: Any, keep: Callable[[Any], Any], out_of_core: bool) -> Any:
    """The rows that `keep` leaves, in memory or in temporary files."""
    if not out_of_core:
        return keep(frame)
    nw = required("narwhals", "tables")
    kept = (keep(part).to_arrow().to_batches() for part in parts_of(frame))
    return nw.from_native(spooled(batch for part in kept for batch in part), eager_only=True)
