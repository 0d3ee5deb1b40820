"""Whether files that draws are made from are still those that were opened.

A mapped file that somebody writes into changes the posterior under the chains, and nothing fails.
"""

from collections.abc import Iterable
from pathlib import Path

from amagold.data._in_memory import InMemory
from amagold.data._joined import Joined
from amagold.data._memory_mapped import MemoryMapped
from amagold.data._protocol import Data
from amagold.data._viewed import Viewed

Signature = tuple[int, ...] | None  # None where there is no file

_opened: dict[str, dict[Path, Signature]] = {}  # by the fingerprint of the data in them


def remember_files(data: Data, files: Iterable[Path]) -> None:
    """That these are the files of the data, as they are now."""
    fingerprint = data.fingerprint()
    assert fingerprint is not None
    _opened[fingerprint] = {file: _signature(file) for file in files}


def changed_file(data: Data) -> Path | None:
    """A file of the data that is not as it was when it was opened."""
    for part in _parts(data):
        # data in memory would be walked over for a fingerprint, and have no files
        known = {} if _is_in_memory(part) else _opened.get(part.fingerprint() or "", {})
        for file, signature in known.items():
            if _signature(file) != signature:
                return file
    return None


def _parts(data: Data) -> list[Data]:
    if isinstance(data, Viewed):
        return _parts(data.data)
    if isinstance(data, Joined) and not data.seal:
        return [*_parts(data.first), *_parts(data.second)]
    return [data]


def _is_in_memory(data: Data) -> bool:
    return isinstance(data, InMemory) and not isinstance(data, MemoryMapped)


def _signature(file: Path) -> Signature:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_size, found.st_mtime_ns, found.st_ino, found.st_dev
