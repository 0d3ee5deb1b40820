"""Make a row store of a table that rows cannot be read from one by one: once, streamed, in bounded
memory, and there whole or not at all.
"""

import errno
import json
import os
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from amagold.core.files import UNUSABLE, as_path, read_whole, remove, write_whole
from amagold.core.progress import Steps, show_steps
from amagold.data._fields import ColumnMoments, Field, as_numbers_of, width_of, word_type
from amagold.data._find_source import find_source
from amagold.data._row_sources import Levels, RowSource, source_stamps
from amagold.data._row_store import (
    MANIFEST,
    MOST_BYTES,
    ROWS,
    Manifest,
    Stamp,
    checksum,
    is_row_store,
    read_manifest,
    rows_per_block,
)

JOURNAL = "journal.json"  # how far a conversion came, so that another process can go on
JOURNAL_BLOCKS = 16  # blocks between two entries


class Converted(NamedTuple):
    """How far a conversion is."""

    checksums: tuple[int, ...]  # of the blocks that are written
    moments: ColumnMoments
    levels: Levels


def prepare(
    source: Any,
    destination: Any,
    *,
    columns: Sequence[str] | None = None,
    progress: bool | None = None,
) -> Path:
    """Convert Parquet or Arrow files or a Zarr array or group to a row store, once.

    A store that is there already and was made of the same files is left as it is. A conversion
    that was stopped goes on where it was.

    Args:
      source: a file, a folder of files, or a list of files.
      destination: the folder to make.
      columns: which to keep, in this order; None keeps all.
      progress: whether to show a bar; None shows it on a terminal.
    """
    from filelock import FileLock, Timeout  # late: it brings asyncio, and few runs convert

    folder = as_path("destination", destination, "a folder to make")
    rows = find_source("source", source, columns)
    if rows.num_rows < 1:
        raise ValueError("source must hold at least one row, got none")
    if folder.exists() and not is_row_store(folder):
        raise ValueError(
            f"destination must not exist yet, or be a row store, but {str(folder)!r} is something "
            "else; choose another name"
        )
    if is_current(folder, rows):
        return folder
    working = folder.with_name(f".{folder.name}.partial")
    folder.absolute().parent.mkdir(parents=True, exist_ok=True)
    lock = folder.with_name(f".{folder.name}.lock")
    try:
        with FileLock(lock, timeout=0):
            with show_steps(f"preparing {folder.name}", shown=progress) as report:
                _convert(rows, working, report)
            remove(folder)
            working.rename(folder)
            lock.unlink(missing_ok=True)
    except Timeout:
        raise ValueError(
            f"destination must be nobody else's work, but another process is preparing "
            f"{str(folder)!r}; wait for it"
        ) from None
    except ValueError:  # the source is refused, so there is nothing to go on with
        _clear(working, lock)
        raise
    except OSError as reason:
        if reason.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _clear(working, lock)
        raise ValueError(
            f"destination must be on a disk with room for {_size(rows)}, but {str(folder)!r} ran "
            "out of it; nothing was left there: free some, or choose another disk"
        ) from None
    return folder


def _clear(working: Path, lock: Path) -> None:
    remove(working)
    lock.unlink(missing_ok=True)


def is_current(folder: Path, rows: RowSource) -> bool:
    """Whether the folder is a row store of just this source."""
    if not is_row_store(folder):
        return False
    manifest = read_manifest(folder)
    plain = tuple(field._replace(levels=None) for field in manifest.fields)
    return manifest.source == source_stamps(rows.files) and plain == rows.fields


def _size(rows: RowSource) -> str:
    return f"{4 * width_of(rows.fields) * rows.num_rows / 2**20:,.0f} MiB"


def _convert(rows: RowSource, working: Path, report: Steps) -> None:
    """Rows, block by block, into the file, and its manifest at the end."""
    begun = _go_on(rows, working) or _begin(rows, working)
    size = rows_per_block(rows.fields)
    start = len(begun.checksums) * size
    total = -(-rows.num_rows // size)
    stamps = source_stamps(rows.files)
    levels, moments, sums = begun.levels, begun.moments, list(begun.checksums)
    with (working / ROWS).open("r+b") as file:
        file.seek(_offset(working) + start * 4 * width_of(rows.fields))
        for words in _blocks(rows, start, size, levels):
            file.write(words.tobytes())
            sums.append(checksum(words))
            moments = moments.with_block(as_numbers_of(rows.fields, words))
            if len(sums) % JOURNAL_BLOCKS == 0:
                file.flush()
                os.fsync(file.fileno())
                _write_journal(working, rows, Converted(tuple(sums), moments, levels))
            report(len(sums), total)
        file.flush()
        os.fsync(file.fileno())
    if source_stamps(rows.files) != stamps or len(sums) != total:
        raise ValueError(
            "source must stay as it is while it is read, but a file of it was changed; nothing "
            "was left there: prepare it again"
        )
    fields = tuple(
        field._replace(levels=tuple(levels[field.name])) if field.name in levels else field
        for field in rows.fields
    )
    manifest = Manifest(
        fields,
        rows.num_rows,
        Stamp.of(working / ROWS),
        size,
        tuple(sums),
        moments,
        stamps,
    )
    content = json.dumps(manifest.as_json(), indent=1).encode()
    write_whole(working / MANIFEST, content, durable=True)
    (working / JOURNAL).unlink(missing_ok=True)


def _blocks(rows: RowSource, start: int, size: int, levels: Levels) -> Iterator[np.ndarray]:
    """The source's rows cut into the store's blocks."""
    waiting: list[np.ndarray] = []
    held = 0
    for words in rows.words(start, levels):
        waiting.append(words)
        held += len(words)
        while held >= size:
            joined = np.concatenate(waiting)
            yield np.ascontiguousarray(joined[:size])
            waiting, held = [joined[size:]], held - size
    if held:
        yield np.ascontiguousarray(np.concatenate(waiting))


def _begin(rows: RowSource, working: Path) -> Converted:
    """An empty file of the right size, whose room is there."""
    remove(working)
    working.mkdir(parents=True)
    free = shutil.disk_usage(working).free
    needed = 4 * width_of(rows.fields) * rows.num_rows
    if needed > free:
        raise OSError(errno.ENOSPC, "no space")
    shape = (rows.num_rows, width_of(rows.fields))
    mapped = np.lib.format.open_memmap(
        working / ROWS, mode="w+", dtype=word_type(rows.fields), shape=shape
    )
    del mapped
    return Converted((), ColumnMoments.nothing(width_of(rows.fields)), Levels())


def _go_on(rows: RowSource, working: Path) -> Converted | None:
    """How far an earlier process came with the same source; None where there is nothing to go on
    with.
    """
    try:
        found = json.loads(read_whole(working / JOURNAL, MOST_BYTES))
        if found["source"] != _identity(rows):
            return None
        levels = Levels()
        for name, names in found["levels"].items():
            levels[name] = {level: code for code, level in enumerate(names)}
        return Converted(
            tuple(map(int, found["checksums"])),
            ColumnMoments.from_json(found["moments"]),
            levels,
        )
    except (OSError, *UNUSABLE):
        return None


def _write_journal(working: Path, rows: RowSource, at: Converted) -> None:
    content = {
        "source": _identity(rows),
        "checksums": list(at.checksums),
        "moments": at.moments.as_json(),
        "levels": {name: list(codes) for name, codes in at.levels.items()},
    }
    write_whole(working / JOURNAL, json.dumps(content).encode(), durable=True)


def _identity(rows: RowSource) -> list[Any]:
    """What must be equal for a conversion to go on, as JSON has it."""
    described = [[list(stamp) for stamp in source_stamps(rows.files)], _plain(rows.fields)]
    return json.loads(json.dumps(described))


def _plain(fields: tuple[Field, ...]) -> list[list[Any]]:
    return [list(field) for field in fields]


def _offset(working: Path) -> int:
    """Where the rows begin in the file, after NumPy's header."""
    return np.load(working / ROWS, mmap_mode="r", allow_pickle=False).offset  # type: ignore[union-attr]
