"""A row store cut into shards, one for each process: folders of their own, which may lie on
different machines, and a file that says what belongs together.

shards.json            the whole table's seal and moments, and every shard's seal, in order
shard-00000-of-00004/  a row store of some of the rows
"""

import errno
import json
import shutil
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from amagold.core import checks
from amagold.core.files import UNUSABLE, as_path, read_whole, remove, write_whole
from amagold.core.progress import Steps, show_steps
from amagold.data._fields import ColumnMoments, as_numbers_of, width_of
from amagold.data._row_store import (
    MANIFEST,
    MOST_BYTES,
    ROWS,
    Manifest,
    Stamp,
    checksum,
    is_row_store,
    open_rows,
    read_manifest,
)
from amagold.data._split_over import edge

SHARDS = "shards.json"
FORMAT, VERSION = "amagold shards", 1


class Shards(NamedTuple):
    """What belongs together."""

    seal: str  # of all rows, as the row store has it that was cut
    moments: ColumnMoments
    names: tuple[str, ...]
    seals: tuple[str, ...]


def split(source: Any, destination: Any, shards: int, *, progress: bool | None = None) -> Path:
    """Cut a row store into shards of whole rows, as even as can be, for as many processes.

    Args:
      source: a row store (`amagold.data.prepare`).
      destination: the folder to make.
      shards: how many.
      progress: whether to show a bar; None shows it on a terminal.
    """
    folder, store = (
        as_path("destination", destination, "a folder to make"),
        as_path("source", source, "a row store"),
    )
    checks.whole_number("shards", shards, at_least=1, remedy="give the number of processes")
    if folder.exists():
        raise ValueError(
            f"destination must not exist yet, but {str(folder)!r} does; choose another name"
        )
    if not is_row_store(store):
        raise ValueError(
            f"source must be a row store, but {str(store)!r} is none; make one with "
            "amagold.data.prepare"
        )
    manifest = read_manifest(store)
    if manifest.num_rows < shards:
        raise ValueError(
            f"shards must be at most the {manifest.num_rows} rows that there are, got {shards}"
        )
    working = folder.with_name(f".{folder.name}.partial")
    remove(working)
    try:
        working.mkdir(parents=True)
        if shutil.disk_usage(working).free < manifest.file.num_bytes:
            raise OSError(errno.ENOSPC, "no space")
        with show_steps(f"splitting {store.name}", shown=progress) as report:
            _write(open_rows(store, manifest), manifest, working, shards, report)
        working.rename(folder)
    except OSError as reason:
        remove(working)
        if reason.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        raise ValueError(
            f"destination must be on a disk with room for {manifest.file.num_bytes:,} bytes, but "
            f"{str(folder)!r} has not; nothing was left there"
        ) from None
    except BaseException:
        remove(working)
        raise
    return folder


def _write(words: np.ndarray, whole: Manifest, working: Path, count: int, report: Steps) -> None:
    described = []
    for place in range(count):
        first, last = (edge(len(words), at, count) for at in (place, place + 1))
        name = f"shard-{place:05d}-of-{count:05d}"
        manifest = _write_shard(words[first:last], whole, working / name)
        described.append({"name": name, "seal": manifest.seal})
        report(place + 1, count)
    content = {
        "format": FORMAT,
        "version": VERSION,
        "seal": whole.seal,
        "moments": whole.moments.as_json(),
        "shards": described,
    }
    write_whole(working / SHARDS, json.dumps(content, indent=1).encode(), durable=True)


def _write_shard(words: np.ndarray, whole: Manifest, folder: Path) -> Manifest:
    folder.mkdir()
    size, sums = whole.rows_per_block, []
    moments = ColumnMoments.nothing(width_of(whole.fields))
    out = np.lib.format.open_memmap(folder / ROWS, "w+", words.dtype, words.shape)
    for start in range(0, len(words), size):
        block = np.ascontiguousarray(words[start : start + size])
        out[start : start + size] = block
        sums.append(checksum(block))
        moments = moments.with_block(as_numbers_of(whole.fields, block))
    out.flush()
    del out
    manifest = Manifest(
        whole.fields,
        len(words),
        Stamp.of(folder / ROWS),
        size,
        tuple(sums),
        moments,
        whole.source,
    )
    content = json.dumps(manifest.as_json(), indent=1).encode()
    write_whole(folder / MANIFEST, content, durable=True)
    return manifest


def is_sharded(folder: Path) -> bool:
    return (folder / SHARDS).is_file()


def read_shards(folder: Path) -> Shards:
    """Raises one sentence where it is not usable."""
    try:
        found = json.loads(read_whole(folder / SHARDS, MOST_BYTES))
        if found["format"] != FORMAT or found["version"] != VERSION or not found["shards"]:
            raise ValueError("it is of another format or version")
        return Shards(
            str(found["seal"]),
            ColumnMoments.from_json(found["moments"]),
            tuple(Path(str(each["name"])).name for each in found["shards"]),
            tuple(str(each["seal"]) for each in found["shards"]),
        )
    except OSError as reason:
        why = reason.strerror or str(reason)
    except UNUSABLE as reason:
        why = str(reason) or type(reason).__name__
    raise ValueError(
        f"path must be a folder of shards, but {str(folder / SHARDS)!r} cannot be used: {why}; "
        "split the row store again"
    )


def shard_manifest(folder: Path, shards: Shards, place: int) -> Manifest:
    """What a shard says of itself, if it is the one that belongs there."""
    where, count = folder / shards.names[place], len(shards.names)
    if not is_row_store(where):
        raise ValueError(
            f"path must hold shard {place} of {count}, but {str(where)!r} is missing; copy it "
            "there, or split the row store again"
        )
    manifest = read_manifest(where)
    if manifest.seal != shards.seals[place]:
        raise ValueError(
            f"path must hold shard {place} of {count} as it was split, but {str(where)!r} is "
            "another: swapped with one, or made anew; copy it again, or split the row store again"
        )
    return manifest
