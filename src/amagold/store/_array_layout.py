"""The Zarr metadata of a run: every document that amagold writes is made here, from a few facts.

What a store says is read the other way round: the facts are taken out, the documents made again,
and compared. So an array of another format, with another type, codec, filter or attribute, is
refused before a byte of it is decoded.
"""

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from amagold.store._names import DTYPES, Variable, dimensions, is_plain
from amagold.store._seal import UnreadableError, canonical
from amagold.store._sealed_chunk import MOST_BYTES

LARGEST_CHUNK = 2**26  # bytes of several draws that are read at once; one draw may be larger
COORDINATE_CHUNK = 2**20  # numbers of a coordinate in one chunk
GROUP = {"attributes": {}, "zarr_format": 3, "node_type": "group"}

Number = float | int | bool


class Column(NamedTuple):
    """A variable as it is laid out."""

    shape: tuple[int, ...]  # after chain and draw
    dtype: str
    in_chunk: int  # draws
    fill: Number  # where nothing is yet; of a constant, its value
    is_constant: bool


class ArrayGroup(NamedTuple):
    """Variables with common draws: how many are committed, and how many there is room for."""

    num_chains: int
    room: int
    length: int
    columns: Mapping[str, Column]


def lay_out(variables: Mapping[str, Variable], num_chains: int, room: int, size: int) -> ArrayGroup:
    """A new group, without draws, in chunks of at most `size` bytes or of one draw."""
    columns = {}
    for name, (shape, dtype, is_constant) in variables.items():
        in_chunk = max(1, min(room, size // _draw_bytes(shape, dtype, num_chains)))
        columns[name] = Column(shape, dtype, in_chunk, _empty(dtype), is_constant)
    return ArrayGroup(num_chains, room, 0, columns)


def documents(group: ArrayGroup, length: int) -> dict[str, dict[str, Any]]:
    """The metadata of every array of a group, by name, with this many draws."""
    found = {}
    for name, column in group.columns.items():
        found[name] = _array(
            shape=(group.num_chains, length, *column.shape),
            dtype=column.dtype,
            chunks=chunk_shape(group, name),
            names=dimensions(name, len(column.shape)),
            fill=column.fill,
            attributes={"constant": 1} if column.is_constant else {},
        )
    # last, so that no variable can take the name of an axis
    found |= {
        name: _coordinate(name, extent, extent) for name, extent in coordinates(group).items()
    }
    return found | {"draw": _coordinate("draw", length, group.room)}


def coordinates(group: ArrayGroup) -> dict[str, int]:
    """The axes of a group that have numbers, and how many they have in the whole run."""
    axes = {"chain": group.num_chains, "draw": group.room}
    for name, column in group.columns.items():
        axes |= dict(zip(dimensions(name, len(column.shape))[2:], column.shape, strict=True))
    return axes


def chunk_shape(group: ArrayGroup, name: str) -> tuple[int, ...]:
    """All chains, some draws, whole values."""
    column = group.columns[name]
    return group.num_chains, column.in_chunk, *(max(1, axis) for axis in column.shape)


def in_coordinate_chunk(extent: int) -> int:
    return max(1, min(extent, COORDINATE_CHUNK))


def read_group(name: str, room: Any, found: Mapping[str, Any]) -> ArrayGroup:
    """The facts of a group from its arrays' metadata; raises unless all of it is what we write."""
    num_chains, length = (_extents(f"{name}/{axis}", found[axis])[0] for axis in ("chain", "draw"))
    if type(room) is not int or not 0 <= length <= room or num_chains < 1:
        raise UnreadableError(f"{name} claims to be larger than it is")
    drawn = {array: entry for array, entry in found.items() if _has_draws(entry)}
    columns = {array: _column(f"{name}/{array}", entry) for array, entry in drawn.items()}
    group = ArrayGroup(num_chains, room, length, columns)
    for array, column in columns.items():
        bound = MOST_BYTES if column.in_chunk == 1 else LARGEST_CHUNK
        one_draw = _draw_bytes(column.shape, column.dtype, num_chains)
        if not 1 <= column.in_chunk <= max(1, room) or column.in_chunk * one_draw > bound:
            raise UnreadableError(
                f"{name}/{array} has chunks of a size that amagold does not write"
            )
    expected = documents(group, length)
    for array in sorted({*expected, *found}):
        if not is_plain(array):
            raise UnreadableError(f"{name}/{array!r} is not a name within the store")
        if canonical(found.get(array)) != canonical(expected.get(array)):
            raise UnreadableError(f"{name}/{array} is not an array as amagold writes it")
    return group


def _has_draws(entry: Any) -> bool:
    axes = entry["dimension_names"]
    if not isinstance(axes, list):
        raise UnreadableError("an array's axes have no names")
    return len(axes) > 1


def _extents(name: str, entry: Any) -> list[int]:
    extents = entry["shape"]
    if not isinstance(extents, list) or not extents:
        raise UnreadableError(f"{name} has no shape")
    if any(type(extent) is not int or extent < 0 for extent in extents):
        raise UnreadableError(f"{name} has no shape")
    return extents


def _column(name: str, entry: Any) -> Column:
    shape, dtype = _extents(name, entry), entry["data_type"]
    if len(shape) < 2:
        raise UnreadableError(f"{name} has no chains and draws")
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise UnreadableError(f"{name} holds a type of numbers that amagold does not write")
    in_chunk = entry["chunk_grid"]["configuration"]["chunk_shape"][1]
    if type(in_chunk) is not int:
        raise UnreadableError(f"{name} has no chunks")
    is_constant = entry["attributes"] == {"constant": 1}
    fill = _constant(name, dtype, entry["fill_value"]) if is_constant else _empty(dtype)
    return Column(tuple(shape[2:]), dtype, in_chunk, fill, is_constant)


def _constant(name: str, dtype: str, value: Any) -> Number:
    """The one value of a column; raises unless it is of its type."""
    kind = np.dtype(dtype)
    if kind.kind == "f" and value == "NaN":
        return math.nan
    allowed = {"f": (int, float), "b": (bool,)}.get(kind.kind, (int,))
    with np.errstate(over="ignore"):
        # a whole number that does not fit raises OverflowError, another becomes infinite
        if type(value) in allowed and np.isfinite(np.asarray(value, kind)):
            return value
    raise UnreadableError(f"{name} has a value that is not of its type")


def _draw_bytes(shape: tuple[int, ...], dtype: str, num_chains: int) -> int:
    return num_chains * math.prod(max(1, axis) for axis in shape) * np.dtype(dtype).itemsize


def _empty(dtype: str) -> Number:
    """What stands where nothing is yet."""
    return {"f": math.nan, "b": False}.get(np.dtype(dtype).kind, 0)


def _coordinate(name: str, extent: int, room: int) -> dict[str, Any]:
    chunks = (in_coordinate_chunk(room),)
    return _array(
        shape=(extent,), dtype="int64", chunks=chunks, names=(name,), fill=0, attributes={}
    )


def _array(
    *,
    shape: tuple[int, ...],
    dtype: str,
    chunks: tuple[int, ...],
    names: tuple[str, ...],
    fill: Number,
    attributes: dict[str, Any],
) -> dict[str, Any]:
    size = np.dtype(dtype).itemsize
    order = {"configuration": {"endian": "little"}} if size > 1 else {}
    lz4 = {"typesize": size, "cname": "lz4", "clevel": 1, "shuffle": "shuffle", "blocksize": 0}
    blosc = {"name": "blosc", "configuration": lz4}
    return {
        "shape": list(shape),
        "data_type": dtype,
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": list(chunks)}},
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "NaN" if fill != fill else fill,
        "codecs": [{"name": "bytes", **order}, blosc, {"name": "crc32c"}],
        "attributes": attributes,
        "dimension_names": list(names),
        "zarr_format": 3,
        "node_type": "array",
        "storage_transformers": [],
    }
