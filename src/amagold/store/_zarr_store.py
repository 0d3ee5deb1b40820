"""Draws on disk as they come: Zarr in ArviZ's layout.

Every array is laid out for the whole run at the start. What readers see is the consolidated
metadata of the root (and of each group, for those who open one alone), which says how many draws
there are; replacing the root's file is the commit. A reader never sees half a draw, and a process
killed at any moment leaves a run that opens.

Nothing is believed that cannot be checked: the root by its checksum and by what amagold writes,
draws by the checksum of their chunk. Everything else is known beforehand, and made again.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from amagold.core.files import first_link, make_folders, remove, remove_parts, write_whole
from amagold.store import _sealed_chunk as chunk
from amagold.store._array_layout import ArrayGroup, Column, chunk_shape, documents, lay_out
from amagold.store._coordinates import damaged_extras, restore_extra, write_extras, write_json
from amagold.store._names import Variable
from amagold.store._root import (
    NAME,
    PRIVATE,
    Root,
    group_document,
    is_intact,
    places,
    read_root,
    write_root,
)
from amagold.store._seal import UnreadableError

ZARR_CHUNK_BYTES = 2**20  # of one Zarr chunk: small, because a damaged one costs few draws

__all__ = ["PRIVATE", "StoreFailedError", "UnreadableError", "ZarrStore"]


class StoreFailedError(OSError):
    """The disk did not take the draws."""


class ZarrStore:
    """The arrays of one run, by group: posterior, sample_stats, and what else it keeps."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        link = first_link(path)
        if link is not None:
            wrong = f"{str(link)!r} is a link, which is not a name within the store"
            raise UnreadableError(f"{wrong}; put there what it leads to")
        self.path = path
        self.is_read_only = read_only
        self._root, self._problems = read_root(path)

    @classmethod
    def create(
        cls,
        path: Path,
        groups: Mapping[str, Mapping[str, Variable]],
        lengths: Mapping[str, int],
        num_chains: int,
        attributes: dict[str, Any],
    ) -> "ZarrStore":
        """Lay out all arrays in a folder of its own, without draws."""
        made = {}
        for name, variables in groups.items():
            made[name] = lay_out(variables, num_chains, lengths[name], ZARR_CHUNK_BYTES)
        root = Root(attributes, made)
        path.mkdir(parents=True)
        write_extras(path, root)
        write_root(path, root)
        return cls(path)

    @property
    def groups(self) -> list[str]:
        return sorted(self._root.groups)

    @property
    def attributes(self) -> dict[str, Any]:
        return dict(self._root.attributes)

    def group(self, name: str) -> ArrayGroup:
        """The variables of a group and its sizes."""
        return self._root.groups[name]

    def length(self, group: str) -> int:
        """How many draws of a group are committed."""
        return self.group(group).length

    def write(self, group: str, first: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Write draws from number `first` on; axes (chain, draw, ...). They show after the next
        commit.
        """
        for name, values in arrays.items():
            (self.path / group / name).stat()  # raises where the store was moved away
            step, stop = self.group(group).columns[name].in_chunk, first + values.shape[1]
            for number in range(first // step, -(-stop // step)) if values.size else ():
                low, high = max(first, number * step), min(stop, (number + 1) * step)
                part = values[:, low - first : high - first]
                self._write_chunk(group, name, number, low - number * step, part)

    def _write_chunk(
        self, group: str, name: str, number: int, start: int, values: np.ndarray
    ) -> None:
        """Put draws into a chunk, from place `start` on, after those that are there already."""
        if start:
            content = self.read_chunk(group, name, number).copy()
        else:
            column = self.group(group).columns[name]
            content = np.full(chunk_shape(self.group(group), name), column.fill, column.dtype)
        content[:, start : start + values.shape[1]] = values
        file = self._chunk_file(group, name, number)
        make_folders(self.path / group / name, file.parent)
        write_whole(file, chunk.encode(content), durable=False)

    def read_chunk(self, group: str, name: str, number: int) -> np.ndarray:
        """The draws from `number * in_chunk` on, of all chains; raises `DamagedChunkError`."""
        try:
            return self._read_chunk(group, name, number)
        except chunk.DamagedChunkError as reason:
            remedy = "amagold.load opens the draws before it, amagold.resume makes them again"
            file = str(self._chunk_file(group, name, number))
            raise chunk.DamagedChunkError(f"{file!r} is damaged: {reason}; {remedy}") from None

    def _read_chunk(self, group: str, name: str, number: int) -> np.ndarray:
        file, dtype = self._chunk_file(group, name, number), self.group(group).columns[name].dtype
        return chunk.read(file, chunk_shape(self.group(group), name), np.dtype(dtype))

    def set_constants(self, group: str, values: Mapping[str, Any]) -> None:
        """Give columns that never change their value, which readers see in place of missing
        chunks.
        """
        for name, given in values.items():
            found = self.group(group)
            value = np.asarray(given, found.columns[name].dtype).item()
            if found.columns[name].fill != value:
                columns = {**found.columns, name: found.columns[name]._replace(fill=value)}
                found = found._replace(columns=columns)
                write_json(self.path / group / name / NAME, documents(found, found.room)[name])
                self._root = self._root._replace(groups={**self._root.groups, group: found})

    def commit(self, lengths: Mapping[str, int], attributes: dict[str, Any]) -> None:
        """Show this many draws of each group, and these attributes, from now on."""
        assert not self.is_read_only
        groups = dict(self._root.groups)
        for name, length in lengths.items():
            groups[name] = groups[name]._replace(length=length)
            write_json(self.path / name / NAME, group_document(groups[name]))
        root = Root({**self._root.attributes, **attributes}, groups)
        # last: this is the commit
        write_root(self.path, root)
        # and only now is it true: what could not be written is not there
        self._root = root

    def first_damage(self, group: str) -> tuple[int, str] | None:
        """The first committed draw that cannot be read back, and why; None when all are as
        written.
        """
        worst: tuple[int, str] | None = None
        for name, column in self._written_columns(group):
            stop = self.length(group) if worst is None else worst[0]
            for start in range(0, stop, column.in_chunk):
                reason = self._damage_of(group, name, start // column.in_chunk)
                if reason:
                    worst = (
                        start,
                        f"{group}/{name}: the chunk of draw {start} is damaged ({reason})",
                    )
                    break
        return worst

    def num_readable(self, group: str) -> int:
        """How many committed draws come before the first damage."""
        damage = self.first_damage(group)
        return self.length(group) if damage is None else damage[0]

    def clear_damage(self, group: str) -> None:
        """Remove damaged chunks, so that they can be written again."""
        for name, _ in self._written_columns(group):
            folder = self.path / group / name / "c" / "0"
            for upper in (folder.parent.parent, folder.parent, folder):
                if upper.exists() and not upper.is_dir():
                    remove(upper)
            make_folders(self.path, folder)
            for found in folder.iterdir():
                if found.name.isdecimal() and self._damage_of(group, name, int(found.name)):
                    remove(found)

    def problems(self) -> list[str]:
        """What is wrong beside the draws, in sentences. None of it is used: it is known from
        elsewhere.
        """
        sentences = [f"damaged metadata: {reason}; its copy was used" for reason in self._problems]
        for kind, file, _ in damaged_extras(self.path, self._root):
            name = str(file.relative_to(self.path))
            sentences.append(
                f"damaged {kind}: {name!r} is not what was written; what belongs there was used"
            )
        return sentences

    def repair(self) -> list[str]:
        """Write again what is wrong beside the draws; what it was, in sentences."""
        remove_parts(self.path)
        sentences = [f"{sentence}, and it is written again" for sentence in self.problems()]
        for extra in list(damaged_extras(self.path, self._root)):
            restore_extra(self.path, extra)
        for file in places(self.path):
            if file.is_dir():
                remove(file)
        if not all(is_intact(file, self._root) for file in places(self.path)):
            write_root(self.path, self._root)
        self._problems = []
        return sentences

    def _written_columns(self, group: str) -> Iterator[tuple[str, Column]]:
        """The variables that have chunks."""
        for name, column in self.group(group).columns.items():
            if not column.is_constant and 0 not in column.shape:
                yield name, column

    def _damage_of(self, group: str, name: str, number: int) -> str | None:
        try:
            self._read_chunk(group, name, number)
        except chunk.DamagedChunkError as reason:
            return str(reason)
        return None

    def _chunk_file(self, group: str, name: str, number: int) -> Path:
        place = [0, number, *[0] * len(self.group(group).columns[name].shape)]
        return self.path / group / name / "/".join(["c", *map(str, place)])
