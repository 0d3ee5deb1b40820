"""Arrays in files without a name, for rows that memory has no room for: the system brings the pages
that are read, and the files are gone with the process, however it ends.
"""

import errno
import os
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

LARGE_SHARE = 0.25  # of the machine's memory, beyond which rows are kept in files
CGROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


class ScratchFile:
    """Values that are appended, and then seen as one array."""

    def __init__(self, dtype: Any) -> None:
        self._dtype = np.dtype(dtype)
        self._file = tempfile.TemporaryFile(prefix="amagold-")  # noqa: SIM115 - closed below
        self._length = 0

    def append(self, values: np.ndarray) -> None:
        with _told_about_room():
            self._file.write(np.ascontiguousarray(values, self._dtype).data)
        self._length += len(values)

    def __del__(self) -> None:
        self._file.close()

    def as_array(self) -> np.ndarray:
        """All of them, to be read and written in place; nothing can be appended then."""
        with self._file as file:  # the map keeps what it needs
            file.flush()
            if not self._length:
                return np.zeros(0, self._dtype)
            return np.memmap(file, self._dtype, "r+", shape=(self._length,))


def scratch(shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """An array of a file, whose room is taken at once: a disk that is full would end the process
    when a page of it is written.
    """
    size = int(np.prod(shape, dtype=np.int64)) * np.dtype(dtype).itemsize
    if not size:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile(prefix="amagold-") as file:  # the map keeps what it needs
        with _told_about_room():
            if hasattr(os, "posix_fallocate"):
                os.posix_fallocate(file.fileno(), 0, size)
            else:
                file.truncate(size)
        return np.memmap(file, dtype, "r+", shape=shape)


def empty_beside(source: np.ndarray, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """In a file where the source is in one, else in memory."""
    return scratch(shape, dtype) if is_in_file(source) else np.empty(shape, dtype)


def is_in_file(array: Any) -> bool:
    """Whether an array is a file's, or a part of such a one."""
    return isinstance(array, np.memmap)


def is_large(num_bytes: float) -> bool:
    """Whether so much had better not be in memory."""
    return num_bytes > LARGE_SHARE * memory_bytes()


def memory_bytes() -> float:
    """Of the machine, or what this process may have of it."""
    try:
        found = float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # not everywhere known
        return float("inf")
    for file in CGROUP_LIMITS:
        try:
            found = min(found, float(Path(file).read_text()))
        except (OSError, ValueError):  # none, or "max"
            continue
    return found


class _told_about_room:  # noqa: N801 - a context
    """A full disk in a sentence that says where, and what to do."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, reason: BaseException | None, trace: Any) -> None:
        if isinstance(reason, OSError) and reason.errno in (errno.ENOSPC, errno.EDQUOT):
            raise OSError(
                reason.errno,
                f"the folder for temporary files, {tempfile.gettempdir()!r}, has no room for rows "
                "that memory has none for; set TMPDIR to one that has",
            ) from None
