"""Draws on disk as they come: Zarr in ArviZ's layout.

Every array is laid out for the whole run at the start. What readers see is the consolidated metadata of the root and of each
group, which says how many draws there are; replacing that one file is the commit. A reader never sees half a draw, and a
process killed at any moment leaves a run that opens.
"""

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from amagold.store.files import remove_parts, write_whole
from amagold.store.names import Variable, dimensions

CHUNK_BYTES = 2**20  # of one Zarr chunk: small, because each of Zarr's threads keeps room for some, and a damaged one costs few draws
PRIVATE = ".amagold"  # lock and checkpoints, beside the arrays


class StoreFailedError(OSError):
    """The disk did not take the draws."""


class ZarrStore:
    """The arrays of one run, by group: posterior, sample_stats, and what else it keeps."""

    def __init__(self, path: Path) -> None:
        import zarr

        self.path = path
        self._arrays: dict[str, dict[str, Any]] = {}
        self._documents = {group: json.loads((path / group / "zarr.json").read_bytes()) for group in ("", *self.groups)}
        for group in self.groups:
            metadata = self._documents[group]["consolidated_metadata"]["metadata"]
            names = [name for name, entry in metadata.items() if "draw" in entry["dimension_names"][1:2] and not entry["attributes"]]
            with zarr.config.set({"array.write_empty_chunks": True}):  # so that a missing file is always damage
                self._arrays[group] = {name: zarr.open_array(str(path / group / name), mode="r+") for name in names}

    @classmethod
    def create(
        cls, path: Path, groups: Mapping[str, Mapping[str, Variable]], lengths: Mapping[str, int], num_chains: int, attributes: dict
    ) -> "ZarrStore":
        """Lay out all arrays in a folder of its own; nothing is committed yet."""
        import zarr

        root = zarr.create_group(str(path), zarr_format=3)
        for group_name, variables in groups.items():
            group = root.create_group(group_name)
            length = lengths[group_name]
            _coordinate(group, "chain", num_chains)
            _coordinate(group, "draw", length)
            for name, variable in variables.items():
                _lay_out(group, name, variable, num_chains, length)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Consolidated metadata")
            for group_name in groups:
                zarr.consolidate_metadata(str(path), path=group_name)
            zarr.consolidate_metadata(str(path))
        store = cls(path)
        store.commit(dict.fromkeys(groups, 0), attributes)
        return store

    @property
    def groups(self) -> list[str]:
        return sorted(folder.parent.name for folder in self.path.glob("*/zarr.json"))

    @property
    def attributes(self) -> dict[str, Any]:
        return self._documents[""]["attributes"]

    def length(self, group: str) -> int:
        """How many draws of a group are committed."""
        return self._documents[group]["consolidated_metadata"]["metadata"]["draw"]["shape"][0]

    def write(self, group: str, first: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Write draws from number `first` on; axes (chain, draw, ...). They show after the next commit."""
        for name, values in arrays.items():
            array = self._arrays[group][name]
            array[:, first : first + values.shape[1]] = values.astype(array.dtype, copy=False)

    def set_constants(self, group: str, values: Mapping[str, Any]) -> None:
        """Give columns that never change their one value, which readers see in place of chunks that are not there."""
        for name, value in values.items():
            entry = self._documents[group]["consolidated_metadata"]["metadata"][name]
            if entry["fill_value"] != value:
                entry["fill_value"] = self._documents[""]["consolidated_metadata"]["metadata"][f"{group}/{name}"]["fill_value"] = value
                write_whole(self.path / group / name / "zarr.json", json.dumps(entry, indent=2).encode(), durable=False)

    def commit(self, lengths: Mapping[str, int], attributes: dict[str, Any]) -> None:
        """Show this many draws of each group, and these attributes, from now on."""
        self._documents[""]["attributes"] = {**self.attributes, **attributes}
        for group, length in lengths.items():
            for name, entry in self._documents[group]["consolidated_metadata"]["metadata"].items():
                if "draw" in (entry.get("dimension_names") or ()):
                    entry["shape"][entry["dimension_names"].index("draw")] = length
                    whole = self._documents[""]["consolidated_metadata"]["metadata"][f"{group}/{name}"]
                    whole["shape"] = list(entry["shape"])
        for group in (*lengths, ""):
            write_whole(self.path / group / "zarr.json", json.dumps(self._documents[group], indent=2).encode(), durable=False)

    def first_damage(self, group: str) -> tuple[int, str] | None:
        """The first committed draw that cannot be read back, and why; None when all are as they were written."""
        length = self.length(group)
        worst: tuple[int, str] | None = None
        for name, array in self._arrays[group].items():
            step = array.chunks[1]
            for start in range(0, length if worst is None else worst[0], step):
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
        return self.path / group / name / "/".join(["c", *map(str, place)])

    def clear_from(self, group: str, first: int) -> None:
        """Remove damaged chunks at or after a draw, so that they can be written again, and whatever a killed process left."""
        remove_parts(self.path)
        for name, array in self._arrays[group].items():
            for number in range(first // array.chunks[1], -(-self.length(group) // array.chunks[1])):
                if self._damage_of(array, group, name, number):
                    self._chunk_file(array, group, name, number).unlink(missing_ok=True)


def _coordinate(group: Any, name: str, length: int) -> None:
    settings = {"chunks": (max(1, length),), "dimension_names": (name,), "compressors": _compressors(8)}
    array = group.create_array(name, shape=(length,), dtype="int64", **settings)
    if length:
        array[:] = np.arange(length)


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
        attributes={"constant": True} if variable.is_constant else {},
    )
    for axis, extent in enumerate(variable.shape):
        _coordinate(group, f"{name}_dim_{axis}", extent)


def _compressors(itemsize: int) -> list[Any]:
    from zarr.codecs import BloscCodec, Crc32cCodec

    # fast, and it takes most out of counts and truth values; the checksum comes last, over the bytes on disk
    return [BloscCodec(cname="lz4", clevel=1, shuffle="shuffle", typesize=itemsize), Crc32cCodec()]
