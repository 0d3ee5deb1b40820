"""One process at a time writes to a run. The operating system frees the lock when the process ends,
however it ends.
"""

import os
from pathlib import Path


class StoreInUseError(OSError):
    """Another process is writing to the run."""


class Lock:
    """Held from creation until `release`."""

    def __init__(self, folder: Path, name: Path) -> None:
        from filelock import FileLock, Timeout  # late, because it brings asyncio

        folder.mkdir(exist_ok=True)
        self._owner = folder / "owner"
        self._lock = FileLock(folder / "lock")
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            owner = self._owner.read_text().strip() if self._owner.exists() else "unknown"
            raise StoreInUseError(
                f"store {str(name)!r} is in use by another process (number {owner}); wait until "
                "it ends, or give another path"
            ) from None
        self._owner.write_text(f"{os.getpid()}\n")

    def release(self) -> None:
        self._lock.release()
