"""Open data on disk: as large as the disk, at the price of the rows that are read."""

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np

from amagold.core import checks
from amagold.core.devices import use_all_cores
from amagold.core.files import as_path
from amagold.core.progress import show_steps
from amagold.data._fields import ColumnMoments, RowView
from amagold.data._file_changes import remember_files
from amagold.data._find_source import is_zarr
from amagold.data._joined import Joined
from amagold.data._looked_through import Facts, look_through
from amagold.data._memory_mapped import MemoryMapped, map_file, mapped
from amagold.data._on_host import OnHost, on_host
from amagold.data._parts import parts_as_one
from amagold.data._prepare_rows import prepare
from amagold.data._protocol import Data
from amagold.data._row_store import (
    ROWS,
    Manifest,
    checksum,
    is_row_store,
    open_rows,
    read_manifest,
)
from amagold.data._shards import is_sharded, read_shards, shard_manifest
from amagold.data._split_over import edge
from amagold.data._spread import Spread
from amagold.data._viewed import Viewed
from amagold.processes import agree, share, watched

BESIDE = ".rows"  # the ending of a row store beside its source


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
      path: a row store (`amagold.data.prepare`) or a folder of its shards (`amagold.data.split`),
        an `.npy` file or a folder of them, a Parquet or Arrow file, a folder or a list of them, or
        a Zarr array or group.
      columns: which columns or arrays to take; None takes all.
      part: (i, n) opens the i-th of n parts of the rows, counted from 0, for the i-th of n
        processes of JAX, whose parts are then one; in one process alone it is that part.
      cache: the folder that a converted copy is kept in; None keeps it beside its source.
      progress: whether to show a bar for work that takes long; None shows it on a terminal.
    """
    use_all_cores()  # before the first array is made, because JAX fixes its devices then
    with watched():
        return _open(path, columns, part, cache, progress)


def _open(path: Any, columns: Any, part: Any, cache: Any, progress: bool | None) -> Data:
    if isinstance(path, (list, tuple)):
        return _converted(path, columns, part, cache, progress)
    place = as_path("path", path, "a file or a folder")
    if not place.exists():
        raise ValueError(f"path must exist, but {str(place)!r} does not")
    if is_sharded(place):
        return _open_shards(place, columns, part, progress)
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
    if jax.process_index() == 0:
        prepare(source, folder, columns=columns, progress=progress)
    share("converted")
    return _open_store(folder, None, part, progress)


def _open_store(
    folder: Path, columns: Sequence[str] | None, part: Any, progress: bool | None
) -> Data:
    manifest = read_manifest(folder)
    words, scattered = _mapped_rows(folder, manifest, progress)
    first, last = _range(len(words), part)
    stored = _as_data(
        words[first:last], scattered[first:last], manifest.seal, manifest.moments, part
    )
    remember_files(stored, [folder / ROWS])
    return _seen(stored, folder, manifest, columns)


def _open_shards(
    folder: Path, columns: Sequence[str] | None, part: Any, progress: bool | None
) -> Data:
    """One shard for a part, or all of them, one after the other."""
    shards = read_shards(folder)
    count = len(shards.names)
    if part is None:
        places: Sequence[int] = range(count)
    else:
        _check_part(part)
        if part[1] != count:
            raise ValueError(
                f"part must be one of {count}, because there are as many shards in "
                f"{str(folder)!r}, got {part!r}; split the row store anew, or start as many "
                "processes"
            )
        places = [part[0]]
    manifests = [shard_manifest(folder, shards, place) for place in places]
    rows = [
        _mapped_rows(folder / shards.names[place], manifest, progress)
        for place, manifest in zip(places, manifests, strict=True)
    ]
    if part is not None or count == 1:
        stored: Data = _as_data(*rows[0], shards.seal, shards.moments, part)
    else:
        each = [mapped(*both, "", None) for both in rows]
        joined = functools.reduce(Joined, each[:-1])
        stored = Joined(joined, each[-1], shards.seal, shards.moments.as_bytes())
    remember_files(stored, [folder / shards.names[place] / ROWS for place in places])
    return _seen(stored, folder, manifests[0], columns)


def _mapped_rows(
    folder: Path, manifest: Manifest, progress: bool | None
) -> tuple[np.ndarray, np.ndarray]:
    """All rows, to be read in order and here and there."""
    with show_steps(f"verifying {folder.name}", shown=progress) as report:
        return open_rows(folder, manifest, report), map_file(folder / ROWS, scattered=True)


def _seen(stored: Data, folder: Path, manifest: Manifest, columns: Sequence[str] | None) -> Data:
    """Stored words as a table's rows."""
    names = [field.name for field in manifest.fields]
    missing = [name for name in columns or () if name not in names]
    if missing:
        raise ValueError(
            f"columns must be among those of {str(folder)!r}, but {missing[0]!r} is not: it has "
            f"{', '.join(map(repr, names[:20]))}"
        )
    # without the levels: a view is looked up with every program, and their names do not matter
    coded = tuple(field.name for field in manifest.fields if field.levels is not None)
    fields = tuple(field._replace(levels=None) for field in manifest.fields)
    return Viewed(stored, RowView(fields, None if columns is None else tuple(columns), coded))


def _as_data(
    rows: Any, scattered: Any, seal: str, moments: ColumnMoments | None, part: Any
) -> MemoryMapped | OnHost | Spread:
    """Mapped rows, of which the seal and the moments are of all parts."""
    # a device with a memory of its own has no room for what may be larger than the host's
    here = mapped if jax.default_backend() == "cpu" else on_host
    if part is None:
        return here(rows, scattered, seal, moments)
    if jax.process_count() == 1:
        return here(rows, scattered, f"{seal}:part {part[0]} of {part[1]}", None)
    own = mapped(rows, scattered, seal, None)
    return parts_as_one(own, own.fingerprint(), moments, is_of_all=True)


def _open_arrays(
    files: dict[str | None, Path], part: Any, progress: bool | None
) -> MemoryMapped | OnHost | Spread:
    """Files of NumPy as they are; one pass sees that all numbers are finite, and seals them."""
    arrays = {}
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
    files = {name: files[name] for name in sorted(files, key=str)}
    arrays = {name: arrays[name] for name in files}
    if part is not None:
        kinds = [(str(name), str(array.dtype), array.shape) for name, array in arrays.items()]
        agree({"set of arrays": kinds}, "give all of them the same folder")
    num_rows = min(lengths.values())
    first, last = _range(num_rows, part)
    facts: dict[str | None, Facts] = {}
    with show_steps("checking the data", shown=progress) as report:
        total, done = sum(array[first:last].nbytes for array in arrays.values()), 0

        def count(num_bytes: int) -> None:
            nonlocal done
            done += num_bytes
            report(min(done, total), total)

        # a part alone is looked through by itself; of several, each begins with its first block
        is_alone = part is not None and jax.process_count() == 1
        for name, array in arrays.items():
            if is_alone:
                facts[name], bad = look_through(array[first:last], 0, last - first, count)
            else:
                facts[name], bad = look_through(array, first, last, count)
            if bad is not None:
                at = bad + first * is_alone
                raise ValueError(
                    f"path must hold finite numbers, but {str(files[name])!r} has others from "
                    f"row {at:,} on; drop or impute those rows first"
                )
    if part is not None:
        every = share([list(facts[name]) for name in arrays])
        for place, name in enumerate(arrays):
            theirs = (Facts(*each[place]) for each in every)
            facts[name] = functools.reduce(Facts.followed_by, theirs)
    form = [(str(name), str(array.dtype), array.shape) for name, array in arrays.items()]
    sums = [number for each in facts.values() for number in each.checksums]
    seal = f"crc32c:{checksum(np.asarray(sums, np.uint32)):08x}:{form}"
    known = [facts[name].joined_moments(array[0].size) for name, array in arrays.items()]
    of_all = [np.concatenate(each) for each in zip(*(one[1:] for one in known), strict=True)]
    again = {name: map_file(files[name], scattered=True)[first:last] for name in arrays}
    rows = {name: array[first:last] for name, array in arrays.items()}
    stored = _as_data(
        rows.get(None, rows),
        again.get(None, again),
        seal,
        ColumnMoments(num_rows, *of_all),
        part,
    )
    remember_files(stored, files.values())
    return stored


def _range(num_rows: int, part: Any) -> tuple[int, int]:
    """The first row of a part, and where it ends."""
    if part is None:
        return 0, num_rows
    _check_part(part)
    number, count = part
    first, last = (edge(num_rows, place, count) for place in (number, number + 1))
    if first == last:
        raise ValueError(
            f"part must hold at least one row, but part {number} of {count} of {num_rows} rows "
            "has none; use fewer parts"
        )
    return first, last


def _check_part(part: Any) -> None:
    if not (isinstance(part, tuple) and len(part) == 2):
        raise ValueError(f"part must be a pair (i, n), got {part!r}")
    number, count = part
    checks.whole_number("part[1]", count, at_least=1, remedy="give (i, n) with 0 <= i < n")
    checks.whole_number("part[0]", number, at_least=0, remedy="give (i, n) with 0 <= i < n")
    if number >= count:
        raise ValueError(f"part must be (i, n) with 0 <= i < n, got {part!r}")
    here = (jax.process_index(), jax.process_count())
    if jax.process_count() > 1 and part != here:
        raise ValueError(
            f"part must be (jax.process_index(), jax.process_count()), which is {here} here, got "
            f"{part!r}; one process has one part"
        )
