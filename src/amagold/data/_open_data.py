"""Open data on disk: as large as the disk, at the price of the rows that are read."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from amagold.core import checks
from amagold.core.devices import use_all_cores
from amagold.core.files import as_path
from amagold.core.progress import show_steps
from amagold.data._fields import ColumnMoments, RowView
from amagold.data._find_source import is_zarr
from amagold.data._memory_mapped import MemoryMapped, map_file, mapped
from amagold.data._prepare_rows import prepare
from amagold.data._protocol import Data
from amagold.data._row_store import (
    BLOCK_BYTES,
    ROWS,
    checksum,
    is_row_store,
    open_rows,
    read_manifest,
)
from amagold.data._viewed import Viewed

BESIDE = ".rows"  # the ending of a row store beside its source
ALIGNED = 16  # rows, at whose multiples a part begins, so that JAX can take its memory as it is


def open(
    path: Any,
    *,
    columns: Sequence[str] | None = None,
    part: tuple[int, int] | None = None,
    cache: Any = None,
    progress: bool | None = None,
) -> Data:
    """Data on disk, which `amagold.Posterior` and `amagold.models` take like an array.

    Rows are read where they lie, so memory does not grow with them. A row store and `.npy` files
    are mapped into memory as they are; Parquet, Arrow and Zarr, whose single rows cannot be read
    cheaply, are converted once to a row store, which is used again until its source changes.

    Args:
      path: a row store (`amagold.data.prepare`), an `.npy` file or a folder of them, a Parquet or
        Arrow file, a folder or a list of them, or a Zarr array or group.
      columns: which columns or arrays to take; None takes all.
      part: (i, n) opens the i-th of n parts of the rows, counted from 0, for one of n processes.
      cache: the folder that a converted copy is kept in; None keeps it beside its source.
      progress: whether to show a bar for work that takes long; None shows it on a terminal.
    """
    use_all_cores()  # before the first array is made, because JAX fixes its devices then
    if isinstance(path, (list, tuple)):
        return _converted(path, columns, part, cache, progress)
    place = as_path("path", path, "a file or a folder")
    if not place.exists():
        raise ValueError(f"path must exist, but {str(place)!r} does not")
    if is_row_store(place):
        return _open_store(place, columns, part, progress)
    if place.suffix == ".npy":
        if columns is not None:
            raise ValueError(
                f"columns must not be given for one array, which has no names, but {str(place)!r} "
                "is one; open its folder"
            )
        return _open_arrays({None: place}, part, progress)
    if place.is_dir() and not is_zarr(place) and any(place.glob("*.npy")):
        found = {file.stem: file for file in sorted(place.glob("*.npy"))}
        missing = [name for name in columns or () if name not in found]
        if missing:
            raise ValueError(
                f"columns must be among the arrays of {str(place)!r}, but {missing[0]!r} is not: "
                f"it has {', '.join(map(repr, found))}"
            )
        return _open_arrays({name: found[name] for name in columns or found}, part, progress)
    return _converted(place, columns, part, cache, progress)


def _converted(source: Any, columns: Any, part: Any, cache: Any, progress: bool | None) -> Data:
    """A source that is converted first, or was before."""
    several = [str(each) for each in source] if isinstance(source, (list, tuple)) else []
    first = Path(several[0] if several else str(source))
    # another choice of columns or files is another store
    chosen = hashlib.sha256(repr((several, columns)).encode()).hexdigest()[:8]
    mark = f"-{chosen}" if columns or several else ""
    if cache is None:
        folder = first.with_name(f"{first.name}{mark}{BESIDE}")
    else:
        place = hashlib.sha256(str(first.absolute()).encode()).hexdigest()[:8]
        folder = as_path("cache", cache, "a folder") / f"{first.name}-{place}{mark}{BESIDE}"
    prepare(source, folder, columns=columns, progress=progress)
    return _open_store(folder, None, part, progress)


def _open_store(
    folder: Path, columns: Sequence[str] | None, part: Any, progress: bool | None
) -> Data:
    manifest = read_manifest(folder)
    names = [field.name for field in manifest.fields]
    missing = [name for name in columns or () if name not in names]
    if missing:
        raise ValueError(
            f"columns must be among those of {str(folder)!r}, but {missing[0]!r} is not: it has "
            f"{', '.join(map(repr, names[:20]))}"
        )
    with show_steps(f"verifying {folder.name}", shown=progress) as report:
        words = open_rows(folder, manifest, report)
    stored = mapped(
        _part(words, part),
        _part(map_file(folder / ROWS, scattered=True), part),
        _seal(manifest.seal, part),
        manifest.moments if part is None else None,
    )
    # without the levels: a view is looked up with every program, and their names do not matter
    coded = tuple(field.name for field in manifest.fields if field.levels is not None)
    fields = tuple(field._replace(levels=None) for field in manifest.fields)
    return Viewed(stored, RowView(fields, None if columns is None else tuple(columns), coded))


def _open_arrays(files: dict[str | None, Path], part: Any, progress: bool | None) -> MemoryMapped:
    """Files of NumPy as they are; one pass sees that all numbers are finite, and seals them."""
    arrays, sums = {}, []
    for name, file in files.items():
        try:
            arrays[name] = map_file(file)
        except (OSError, ValueError, EOFError) as reason:
            why = getattr(reason, "strerror", None) or str(reason)
            raise ValueError(f"path must hold whole .npy files, but {str(file)!r}: {why}") from None
        if arrays[name].dtype.kind not in "fiub" or arrays[name].ndim == 0:
            raise ValueError(
                f"path must hold arrays of numbers with the examples along the first axis, but "
                f"{str(file)!r} is of type {arrays[name].dtype} and shape {arrays[name].shape}"
            )
        if arrays[name].dtype.itemsize > 4:
            raise ValueError(
                f"path must hold numbers of at most 32 bits, which JAX can take as they are, but "
                f"{str(file)!r} is of type {arrays[name].dtype}; save it as float32 or int32"
            )
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1 or not min(lengths.values()):
        raise ValueError(
            f"path must hold arrays with one common number of rows, at least one, got {lengths}"
        )
    # in the order that JAX gives a dictionary's arrays
    rows = {name: _part(arrays[name], part) for name in sorted(arrays, key=str)}
    found = {name: ColumnMoments.nothing(array[0].size) for name, array in rows.items()}
    with show_steps("checking the data", shown=progress) as report:
        total = sum(array.nbytes for array in rows.values())
        done = 0
        for name, array in rows.items():
            step = max(1, BLOCK_BYTES // max(1, array[:1].nbytes))
            for start in range(0, len(array), step):
                block = np.ascontiguousarray(array[start : start + step])
                if block.dtype.kind == "f" and not np.isfinite(block).all():
                    bad = start + int(np.argwhere(~np.isfinite(block))[0][0])
                    raise ValueError(
                        f"path must hold finite numbers, but {str(files[name])!r} has others from "
                        f"row {bad:,} on; drop or impute those rows first"
                    )
                sums.append(checksum(block))
                found[name] = found[name].with_block(block.reshape(len(block), -1))
                done += block.nbytes
                report(done, total)
    form = [(str(name), str(array.dtype), array.shape) for name, array in rows.items()]
    seal = f"crc32c:{checksum(np.asarray(sums, np.uint32)):08x}:{form}"
    of_all = [
        np.concatenate(each) for each in zip(*(one[1:] for one in found.values()), strict=True)
    ]
    moments = ColumnMoments(min(lengths.values()), *of_all)
    again = {name: _part(map_file(files[name], scattered=True), part) for name in rows}
    return mapped(
        rows.get(None, rows),
        again.get(None, again),
        _seal(seal, part),
        moments if part is None else None,
    )


def _part(rows: np.ndarray, part: Any) -> np.ndarray:
    """The rows of one of several parts."""
    if part is None:
        return rows
    if not (isinstance(part, tuple) and len(part) == 2):
        raise ValueError(f"part must be a pair (i, n), got {part!r}")
    number, count = part
    checks.whole_number("part[1]", count, at_least=1, remedy="give (i, n) with 0 <= i < n")
    checks.whole_number("part[0]", number, at_least=0, remedy="give (i, n) with 0 <= i < n")
    if number >= count:
        raise ValueError(f"part must be (i, n) with 0 <= i < n, got {part!r}")
    edges = [_edge(len(rows), place, count) for place in (number, number + 1)]
    if edges[0] == edges[1]:
        raise ValueError(
            f"part must hold at least one row, but part {number} of {count} of {len(rows)} rows "
            "has none; use fewer parts"
        )
    return rows[edges[0] : edges[1]]


def _edge(num_rows: int, place: int, count: int) -> int:
    if place == count:
        return num_rows
    return num_rows * place // count // ALIGNED * ALIGNED


def _seal(seal: str, part: Any) -> str:
    return seal if part is None else f"{seal}:part {part[0]} of {part[1]}"
