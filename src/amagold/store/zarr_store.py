"""Draws on disk as they come: Zarr in ArviZ's layout.

Every array is laid out for the whole run at the start. What readers see is the consolidated metadata of the root (and of each
group, for those who open one alone), which says how many draws there are; replacing the root's file is the commit. A reader
never sees half a draw, and a process killed at any moment leaves a run that opens.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from amagold.store.files import remove_parts, write_whole
from amagold.store.names import Variable, dimensions

CHUNK_BYTES = 2**20  # of one Zarr chunk: small, because each of Zarr's threads keeps room for some, and a damaged one costs few draws
COORDINATE_CHUNK = 2**20  # numbers of a coordinate written at once
PRIVATE = ".amagold"  # lock and checkpoints, beside the arrays


class StoreFailedError(OSError):
    """The disk did not take the draws."""


class UnreadableError(ValueError):
    """The folder is not a run, or its description does not fit its arrays."""


class ZarrStore:
    """The arrays of one run, by group: posterior, sample_stats, and what else it keeps."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        import zarr

        self.path = path
        self._root = json.loads((path / "zarr.json").read_bytes())
        self._arrays: dict[str, dict[str, Any]] = {group: {} for group in self.groups}
        for group, name, entry in self._entries():
            if "draw" not in entry["dimension_names"]:
                continue
            place = self._place(group, name)
            with zarr.config.set({"array.write_empty_chunks": True}):  # so that a missing file is always damage
                array: Any = zarr.open_array(place, mode="r" if read_only else "r+")
            if len(entry["shape"]) != array.ndim or any(seen > whole for seen, whole in zip(entry["shape"], array.shape, strict=True)):
                raise UnreadableError(f"{group}/{name} claims to be larger than it is")
            if name != "draw" and not array.attrs.get("constant"):
                self._arrays[group][name] = array

    @classmethod
    def create(
        cls, path: Path, groups: Mapping[str, Mapping[str, Variable]], lengths: Mapping[str, int], num_chains: int, attributes: dict
    ) -> "ZarrStore":
        """Lay out all arrays in a folder of its own; nothing is committed yet."""
        import zarr

        root = zarr.create_group(path, zarr_format=3)
        for group_name, variables in groups.items():
            group = root.create_group(group_name)
            _coordinate(group, "chain", num_chains)
            _coordinate(group, "draw", lengths[group_name])
            for name, variable in variables.items():
                _lay_out(group, name, variable, num_chains, lengths[group_name])
        document = _read(path)
        found = {str(file.parent.relative_to(path).as_posix()): _read(file.parent) for file in sorted(path.glob("*/**/zarr.json"))}
        document["consolidated_metadata"] = _consolidated(found)
        write_whole(path / "zarr.json", json.dumps(document).encode(), durable=False)
        store = cls(path)
        store.commit(dict.fromkeys(groups, 0), attributes)
        return store

    @property
    def _metadata(self) -> dict[str, Any]:
        return self._root["consolidated_metadata"]["metadata"]

    def _entries(self) -> Iterator[tuple[str, str, dict[str, Any]]]:
        """Group, name and metadata of every array."""
        for path, entry in self._metadata.items():
            if entry["node_type"] == "array":
                group, _, name = path.partition("/")
                yield group, name, entry

    def _place(self, group: str, name: str) -> Path:
        """The folder of an array; a name that leads out of the store is refused."""
        place = self.path / group / name
        if "/" in name or place.resolve().parent.parent != self.path.resolve():
            raise UnreadableError(f"{group}/{name} is not a name within the store")
        return place

    @property
    def groups(self) -> list[str]:
        return sorted(path for path, entry in self._metadata.items() if entry["node_type"] == "group")

    @property
    def attributes(self) -> dict[str, Any]:
        return self._root["attributes"]

    def length(self, group: str) -> int:
        """How many draws of a group are committed."""
        return self._metadata[f"{group}/draw"]["shape"][0]

    def capacity(self, group: str) -> int:
        """How many draws of a group there is room for."""
        return min(array.shape[1] for array in self._arrays[group].values())

    def write(self, group: str, first: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Write draws from number `first` on; axes (chain, draw, ...). They show after the next commit."""
        for name, values in arrays.items():
            array = self._arrays[group][name]
            array[:, first : first + values.shape[1]] = values.astype(array.dtype, copy=False)

    def set_constants(self, group: str, values: Mapping[str, Any]) -> None:
        """Give columns that never change their one value, which readers see in place of chunks that are not there."""
        for name, value in values.items():
            entry = self._metadata[f"{group}/{name}"]
            if entry["fill_value"] != value:
                entry["fill_value"] = value
                own = _read(self.path / group / name)
                write_whole(self.path / group / name / "zarr.json", json.dumps({**own, "fill_value": value}).encode(), durable=False)

    def commit(self, lengths: Mapping[str, int], attributes: dict[str, Any]) -> None:
        """Show this many draws of each group, and these attributes, from now on."""
        self._root["attributes"] = {**self.attributes, **attributes}
        for group, _, entry in self._entries():
            if group in lengths and "draw" in entry["dimension_names"]:
                entry["shape"][entry["dimension_names"].index("draw")] = lengths[group]
        for group in lengths:
            members = {name: entry for owner, name, entry in self._entries() if owner == group}
            document = {**self._metadata[group], "consolidated_metadata": _consolidated(members)}
            write_whole(self.path / group / "zarr.json", json.dumps(document).encode(), durable=False)
        # last: this is the commit
        write_whole(self.path / "zarr.json", json.dumps(self._root, indent=1).encode(), durable=False)

    def first_damage(self, group: str) -> tuple[int, str] | None:
        """The first committed draw that cannot be read back, and why; None when all are as they were written."""
        length = self.length(group)
        worst: tuple[int, str] | None = None
        for name, array in self._arrays[group].items():
            step = array.chunks[1]
            for start in range(0, (length if worst is None else worst[0]) if array.size else 0, step):
                reason = self._damage_of(array, group, name, start // step)
                if reason:
                    worst = (start, reason)
                    break
        return worst

    def _damage_of(self, array: Any, group: str, name: str, number: int) -> str | None:
        file = self._chunk_file(array, group, name, number)
        if not file.exists():
            return f"{group}/{name}: chunk {file.name} is missing"
        try:
            array.get_block_selection((0, number))
        except Exception as reason:
            return f"{group}/{name}: the chunk of draw {number * array.chunks[1]} is damaged ({reason})"
        return None

    def _chunk_file(self, array: Any, group: str, name: str, number: int) -> Path:
        place = [0, number, *[0] * (array.ndim - 2)]
        return self._place(group, name) / "/".join(["c", *map(str, place)])

    def clear_damage(self, group: str) -> None:
        """Remove damaged chunks, so that they can be written again, and whatever a killed process left."""
        remove_parts(self.path)
        for name, array in self._arrays[group].items():
            for found in self._chunk_file(array, group, name, 0).parents[array.ndim - 2].glob("*"):
                if found.name.isdigit() and self._damage_of(array, group, name, int(found.name)):
                    self._chunk_file(array, group, name, int(found.name)).unlink(missing_ok=True)


def _read(folder: Path) -> dict[str, Any]:
    return json.loads((folder / "zarr.json").read_bytes())


def _consolidated(metadata: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "inline", "must_understand": False, "metadata": metadata}


def _coordinate(group: Any, name: str, length: int) -> None:
    in_chunk = max(1, min(length, COORDINATE_CHUNK))
    array = group.create_array(
        name, shape=(length,), dtype="int64", chunks=(in_chunk,), dimension_names=(name,), compressors=_compressors(8)
    )
    for start in range(0, length, in_chunk):
        array[start : start + in_chunk] = np.arange(start, min(start + in_chunk, length))


def _lay_out(group: Any, name: str, variable: Variable, num_chains: int, length: int) -> None:
    kind = np.dtype(variable.dtype)
    one_draw = max(1, num_chains * int(np.prod(variable.shape, dtype=np.int64)) * kind.itemsize)
    in_chunk = max(1, min(max(1, length), CHUNK_BYTES // one_draw))
    group.create_array(
        name,
        shape=(num_chains, length, *variable.shape),
        dtype=variable.dtype,
        chunks=(num_chains, in_chunk, *(max(1, axis) for axis in variable.shape)),
        dimension_names=dimensions(name, len(variable.shape)),
        fill_value=kind.type(np.nan if kind.kind == "f" else 0),
        compressors=_compressors(kind.itemsize),
        attributes={"constant": 1} if variable.is_constant else {},
    )
    for axis, extent in enumerate(variable.shape):
        _coordinate(group, f"{name}_dim_{axis}", extent)


def _compressors(itemsize: int) -> list[Any]:
    from zarr.codecs import BloscCodec, Crc32cCodec

    # fast, and it takes most out of counts and truth values; the checksum comes last, over the bytes on disk
    return [BloscCodec(cname="lz4", clevel=1, shuffle="shuffle", typesize=itemsize), Crc32cCodec()]
