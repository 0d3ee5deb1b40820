"""Where draws go as they come: memory, or a store on disk with checkpoints."""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from amagold.processes import share
from amagold.store._checkpoint import Checkpoint, CheckpointFolder
from amagold.store._lock import Lock
from amagold.store._names import Variable, dimensions
from amagold.store._zarr_store import StoreFailedError, ZarrStore

BUFFER_BYTES = 8 * 2**20  # draws waiting for the disk
LONGEST_WAIT = 5.0  # seconds between two checkpoints, if something is waiting
CHECKPOINT_SHARE = 0.02  # of the time may go into checkpoints

# arrays of (chain, draw, ...), or one number for a column that never changes
Columns = Mapping[str, Mapping[str, Any]]


class Recorder(Protocol):
    """Takes draws in order."""

    def add(self, columns: Columns) -> None:
        """Take the next draws of some groups."""
        ...

    def save(self, make_checkpoint: Callable[[], Checkpoint], *, at_once: bool = False) -> None:
        """Make what was added safe, now or when it is due."""
        ...

    def note(self, **attributes: Any) -> None:
        """Keep facts about the run with its draws; they are written with the next save."""
        ...

    def close(self) -> None: ...


class MemoryRecorder:
    """Keeps everything in memory."""

    def __init__(self, groups: Mapping[str, Mapping[str, Variable]], num_chains: int) -> None:
        self.groups = groups
        self.num_chains = num_chains
        self.attributes: dict[str, Any] = {}
        self._pieces: dict[str, dict[str, list[np.ndarray]]] = {
            group: {name: [] for name in names} for group, names in groups.items()
        }

    def add(self, columns: Columns) -> None:
        for group, arrays in columns.items():
            for name, values in arrays.items():
                self._pieces[group][name].append(values)

    def save(self, make_checkpoint: Callable[[], Checkpoint], *, at_once: bool = False) -> None:
        pass

    def note(self, **attributes: Any) -> None:
        self.attributes.update(attributes)

    def close(self) -> None:
        pass

    def _length(self, group: str) -> int:
        pieces = next(
            self._pieces[group][name]
            for name, variable in self.groups[group].items()
            if not variable.is_constant
        )
        return sum(piece.shape[1] for piece in pieces)

    def datasets(self) -> dict[str, Any]:
        """An xarray.Dataset for each group."""
        import xarray

        found = {}
        for group, variables in self.groups.items():
            arrays = {}
            for name, variable in variables.items():
                pieces = self._pieces[group][name]
                if variable.is_constant:
                    values = np.full(
                        (self.num_chains, self._length(group)),
                        pieces[0] if pieces else 0,
                        variable.dtype,
                    )
                else:
                    empty = np.zeros((self.num_chains, 0, *variable.shape), variable.dtype)
                    values = np.concatenate([empty, *pieces], axis=1).astype(
                        variable.dtype, copy=False
                    )
                arrays[name] = (dimensions(name, len(variable.shape)), values)
            dataset = xarray.Dataset(arrays)
            found[group] = dataset.assign_coords(
                {name: np.arange(size) for name, size in dataset.sizes.items()}
            )
        return found


class FollowingRecorder:
    """Of a process that the first one writes for: it makes the same checkpoints, because these need
    all processes, and keeps nothing.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def add(self, columns: Columns) -> None:
        pass

    def save(self, make_checkpoint: Callable[[], Checkpoint], *, at_once: bool = False) -> None:
        if share(None)[0]:
            make_checkpoint()

    def note(self, **attributes: Any) -> None:
        pass

    def close(self) -> None:
        pass


class StoreRecorder:
    """Streams to a Zarr store: a buffer, then draws, then the commit, then the checkpoint, in this
    order.
    """

    def __init__(
        self, store: ZarrStore, lock: Lock, checkpoints: CheckpointFolder, done: dict[str, int]
    ) -> None:
        self.store = store
        self.checkpoints = checkpoints
        self._lock = lock
        self._done = done  # draws of each group that are written
        self._waiting: list[Columns] = []
        self._bytes = 0
        self._notes: dict[str, Any] = {}
        self._saved = time.monotonic()
        self._checkpoint_seconds = 0.0

    @property
    def path(self) -> Path:
        return self.store.path

    def add(self, columns: Columns) -> None:
        self._waiting.append(columns)
        self._bytes += sum(
            np.asarray(values).nbytes for arrays in columns.values() for values in arrays.values()
        )

    def note(self, **attributes: Any) -> None:
        self._notes.update(attributes)

    def save(self, make_checkpoint: Callable[[], Checkpoint], *, at_once: bool = False) -> None:
        waited = time.monotonic() - self._saved
        is_due = waited >= max(LONGEST_WAIT, self._checkpoint_seconds / CHECKPOINT_SHARE)
        writes = at_once or is_due or self._bytes >= BUFFER_BYTES
        checks = writes and (at_once or waited >= self._checkpoint_seconds / CHECKPOINT_SHARE)
        share(checks)  # with the processes that this one writes for
        began = time.monotonic()
        checkpoint = make_checkpoint() if checks else None
        if not writes:
            return
        try:
            self._write()
            if checkpoint is not None:
                self.checkpoints.save(checkpoint)
                self._saved = time.monotonic()
                self._checkpoint_seconds = self._saved - began
        except OSError as reason:
            safe = self.store.length("posterior")
            remedy = (
                "make room on the disk, or bring the folder back, then go on with "
                f"amagold.resume({str(self.path)!r}, ...)"
            )
            raise StoreFailedError(
                f"store {str(self.path)!r} could not be written ({reason}); the first {safe} "
                f"draws are safe: {remedy}"
            ) from reason

    def _write(self) -> None:
        groups = sorted({group for columns in self._waiting for group in columns})
        lengths = {}
        for group in groups:
            pieces = [columns[group] for columns in self._waiting if group in columns]
            constants = {name: value for name, value in pieces[0].items() if np.ndim(value) == 0}
            joined = {
                name: np.concatenate([piece[name] for piece in pieces], axis=1)
                for name in pieces[0]
                if name not in constants
            }
            self.store.set_constants(group, constants)
            self.store.write(group, self._done[group], joined)
            lengths[group] = self._done[group] + next(iter(joined.values())).shape[1]
        self.store.commit(lengths, self._notes)
        self._done.update(lengths)
        self._waiting, self._bytes, self._notes = [], 0, {}

    def close(self) -> None:
        self._lock.release()
