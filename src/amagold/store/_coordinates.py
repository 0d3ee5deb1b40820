"""What a store holds for other readers: the metadata of groups and single arrays, and coordinates.

amagold knows all of it from the root's metadata, so it is never read, only compared and rewritten.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from amagold.core.files import make_folders, read_whole, remove, write_whole
from amagold.store import _sealed_chunk as chunk
from amagold.store._array_layout import ArrayGroup, coordinates, documents, in_coordinate_chunk
from amagold.store._root import MOST_BYTES, NAME, Root, group_document
from amagold.store._seal import UnreadableError, canonical, unseal


class Extra(NamedTuple):
    """A file that is not what it should be: its kind, its place, and what belongs there."""

    kind: str
    file: Path
    content: bytes


def write_extras(path: Path, root: Root) -> None:
    """All of them, in a store in the making."""
    for name, group in root.groups.items():
        for array, document in documents(group, group.room).items():
            (path / name / array).mkdir(parents=True)
            write_json(path / name / array / NAME, document)
        for file, values in _coordinate_chunks(path / name, group):
            file.parent.mkdir(exist_ok=True)
            write_whole(file, chunk.encode(values), durable=False)
        write_json(path / name / NAME, group_document(group))


def damaged_extras(path: Path, root: Root) -> Iterator[Extra]:
    """Those that are not what they should be."""
    for name, group in root.groups.items():
        place = path / name
        if not _is_sealed(place / NAME):
            yield Extra("metadata", place / NAME, _json(group_document(group)))
        for array, document in documents(group, group.room).items():
            # between its first value and the first commit, a constant's file knows more than the
            # root
            is_ahead = (
                array in group.columns and group.columns[array].is_constant and not group.length
            )
            if not _says(place / array / NAME, document, {"fill_value": None} if is_ahead else {}):
                yield Extra("metadata", place / array / NAME, _json(document))
        for file, values in _coordinate_chunks(place, group):
            if not _is_chunk(file, values):
                yield Extra("coordinates", file, chunk.encode(values))


def restore_extra(path: Path, extra: Extra) -> None:
    """Write what belongs there, whatever is there now."""
    for upper in extra.file.parents:
        if path in upper.parents and upper.exists() and not upper.is_dir():
            remove(upper)
    make_folders(path, extra.file.parent)
    if extra.file.is_dir():
        remove(extra.file)
    write_whole(extra.file, extra.content, durable=False)


def write_json(file: Path, document: dict[str, Any]) -> None:
    write_whole(file, _json(document), durable=False)


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode()


def _read_json(file: Path) -> Any:
    """What a file says, or None."""
    try:
        return json.loads(read_whole(file, MOST_BYTES))
    except (OSError, ValueError, RecursionError):
        return None


def _is_sealed(file: Path) -> bool:
    try:
        unseal(_read_json(file))
    except UnreadableError:
        return False
    return True


def _says(file: Path, document: dict[str, Any], apart_from: Mapping[str, Any]) -> bool:
    """Whether a file says just this, apart from some of it."""
    found = _read_json(file)
    if not isinstance(found, dict):
        return False
    return canonical({**found, **apart_from}) == canonical({**document, **apart_from})


def _is_chunk(file: Path, values: np.ndarray) -> bool:
    try:
        return np.array_equal(chunk.read(file, values.shape, values.dtype), values)
    except chunk.DamagedChunkError:
        return False


def _coordinate_chunks(place: Path, group: ArrayGroup) -> Iterator[tuple[Path, np.ndarray]]:
    """The files of all coordinates, and their numbers, with zeros behind the last."""
    for axis, extent in coordinates(group).items():
        step = in_coordinate_chunk(extent)
        for start in range(0, extent, step):
            numbers = np.arange(start, start + step)
            yield place / axis / "c" / str(start // step), np.where(numbers < extent, numbers, 0)
