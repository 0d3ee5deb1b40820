"""The rows of a large file, of which only those that are asked for come into memory."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from amagold.core.freed_memory import give_back
from amagold.core.optional_packages import required
from amagold.core.progress import show_steps
from amagold.tables._row_batches import ARROW, PARQUET, batches_of, suffix_of

FEWEST = 2**17  # rows: fewer are read whole


class FileRows(NamedTuple):
    """A file in which nothing is missing; indexed as a frame is."""

    path: Path
    columns: list[str]
    num_rows: int

    def __len__(self) -> int:
        return self.num_rows

    def __getitem__(self, chosen: Any) -> Any:
        """A narwhals frame of rows by their numbers, which may be there several times, or of a
        slice.
        """
        import pyarrow

        numbers = _numbers(chosen, self.num_rows)
        wanted, places = np.unique(numbers, return_inverse=True)
        found, start = [], 0
        for batch in _batches(self.path, self.columns):
            stop = start + batch.num_rows
            first, last = np.searchsorted(wanted, (start, stop))
            # one that is empty too, for the types
            found.append(batch.take(pyarrow.array(wanted[first:last] - start)))
            start = stop
        table = pyarrow.Table.from_batches(found)
        if not np.array_equal(places, np.arange(len(wanted))):
            table = table.take(pyarrow.array(places))
        give_back()
        return required("narwhals", "tables").from_native(table, eager_only=True)


def rows_of_file(source: Any, columns: list[str], beside: list[str]) -> tuple[FileRows, Any] | None:
    """The rows of a file, and a narwhals frame of some columns of all rows; None where the table is
    no such file, or small, or something is missing in it.
    """
    path = Path(source) if isinstance(source, (str, Path)) else None
    if path is None or not path.is_file() or suffix_of(path) not in (*PARQUET, *ARROW):
        return None
    pyarrow, nw = required("pyarrow", "tables"), required("narwhals", "tables")
    found = []
    try:
        for batch in _batches(path, columns):
            if _misses_some(nw.from_native(pyarrow.Table.from_batches([batch]), eager_only=True)):
                return None
            found.append(batch.select(beside))
    except (pyarrow.ArrowException, OSError, EOFError):
        return None  # whoever reads all of it says why
    num_rows = sum(batch.num_rows for batch in found)
    if num_rows < FEWEST:
        return None
    few = nw.from_native(pyarrow.Table.from_batches(found), eager_only=True)
    give_back()
    return FileRows(path, columns, num_rows), few


def _batches(path: Path, columns: list[str]) -> Iterator[Any]:
    with show_steps(f"Reading {path.name}") as report:
        yield from batches_of(path, columns, report)


def _misses_some(frame: Any) -> bool:
    return any(
        frame[name].null_count() or (frame[name].dtype.is_float() and frame[name].is_nan().any())
        for name in frame.columns
    )


def _numbers(chosen: Any, num_rows: int) -> np.ndarray:
    if isinstance(chosen, slice):
        return np.arange(*chosen.indices(num_rows))
    return np.asarray(chosen, np.int64)
