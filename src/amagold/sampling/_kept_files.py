"""Files that a run keeps beside its draws, from rooms that are not known here."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from amagold.core.files import write_whole
from amagold.store._root import PRIVATE

NONE: Mapping[str, bytes] = {}
_kept: ContextVar[Mapping[str, bytes]] = ContextVar("kept", default=NONE)


@contextmanager
def keeping(files: Mapping[str, bytes]) -> Iterator[None]:
    """Runs that are stored within get these files, by name, with their first checkpoint."""
    before = _kept.set(files)
    try:
        yield
    finally:
        _kept.reset(before)


def write_kept(folder: Path) -> None:
    """Put them into a store that is being made."""
    for name, content in _kept.get().items():
        write_whole(folder / PRIVATE / name, content, durable=False)
