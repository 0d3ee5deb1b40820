"""Draws on disk as they come: Zarr in ArviZ's layout.

Every array is laid out for the whole run at the start. What readers see is the consolidated metadata of the root (and of each
group, for those who open one alone), which says how many draws there are; replacing the root's file is the commit. A reader
never sees half a draw, and a process killed at any moment leaves a run that opens.

Nothing is believed that cannot be checked: the root by its checksum and by what amagold writes, draws by the checksum of
their chunk, and everything else (coordinates, the metadata of single arrays) is known beforehand and made again.
"""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from amagold.store import chunk
from amagold.store.files import first_link, make_folders, read_whole, remove, remove_parts, write_whole
from amagold.store.layout import Column, Group, chunk_shape, coordinates, documents, in_coordinate_chunk, lay_out
from amagold.store.names import Variable
from amagold.store.root import MOST_BYTES, NAME, PRIVATE, Root, group_document, is_intact, places, read_root, write_root
from amagold.store.seal import UnreadableError, canonical, unseal

CHUNK_BYTES = 2**20  # of one Zarr chunk: small, because a damaged one costs few draws

__all__ = ["PRIVATE", "StoreFailedError", "UnreadableError", "ZarrStore"]


class StoreFailedError(OSError):
    """The disk did not take the draws."""


class ZarrStore:
    """The arrays of one run, by group: posterior, sample_stats, and what else it keeps."""

    def __init__(self, path: Path, *, read_only: bool = False) -> None:
        link = first_link(path)
        if link is not None:
            raise UnreadableError(f"{str(link)!r} is a link, which is not a name within the store; put there what it leads to")
        self.path = path
        self.is_read_only = read_only
        self._root, self._problems = read_root(path)

    @classmethod
    def create(
        cls, path: Path, groups: Mapping[str, Mapping[str, Variable]], lengths: Mapping[str, int], num_chains: int, attributes: dict
    ) -> "ZarrStore":
        """Lay out all arrays in a folder of its own, without draws."""
        made = {name: lay_out(variables, num_chains, lengths[name], CHUNK_BYTES) for name, variables in groups.items()}
        (path / PRIVATE).mkdir(parents=True)
        for name, group in made.items():
            for array, document in documents(group, group.room).items():
                (path / name / array).mkdir(parents=True)
                _write_json(path / name / array / NAME, document)
            for axis, extent in coordinates(group).items():
                for number in range(-(-extent // in_coordinate_chunk(extent))):
                    _write_coordinate(path / name, axis, extent, number)
            _write_json(path / name / NAME, group_document(group))
        write_root(path, Root(attributes, made))
        return cls(path)

    @property
    def groups(self) -> list[str]:
        return sorted(self._root.groups)

    @property
    def attributes(self) -> dict[str, Any]:
        return dict(self._root.attributes)

    def group(self, name: str) -> Group:
        """The variables of a group and its sizes."""
        return self._root.groups[name]

    def length(self, group: str) -> int:
        """How many draws of a group are committed."""
        return self.group(group).length

    def write(self, group: str, first: int, arrays: Mapping[str, np.ndarray]) -> None:
        """Write draws from number `first` on; axes (chain, draw, ...). They show after the next commit."""
        for name, values in arrays.items():
            (self.path / group / name).stat()  # raises where the store was moved away
            column = self.group(group).columns[name]
            stop, step = first + values.shape[1], column.in_chunk
            for number in range(first // step, -(-stop // step)) if values.size else ():
                start, end = max(first, number * step), min(stop, (number + 1) * step)
                content = self._room_for(group, name, number, is_empty=start == number * step)
                content[:, start - number * step : end - number * step] = values[:, start - first : end - first]
                file = self._chunk_file(group, name, number)
                make_folders(self.path / group / name, file.parent)
                write_whole(file, chunk.encode(content), durable=False)

    def _room_for(self, group: str, name: str, number: int, *, is_empty: bool) -> np.ndarray:
        """A chunk to write into: with its earlier draws, if it has any."""
        if not is_empty:
            return self.read_chunk(group, name, number).copy()
        column = self.group(group).columns[name]
        return np.full(chunk_shape(self.group(group), name), column.fill, column.dtype)

    def read_chunk(self, group: str, name: str, number: int) -> np.ndarray:
        """The draws from `number * in_chunk` on, of all chains; raises `chunk.DamagedChunkError`."""
        column, file = self.group(group).columns[name], self._chunk_file(group, name, number)
        try:
            return chunk.read(file, chunk_shape(self.group(group), name), np.dtype(column.dtype))
        except chunk.DamagedChunkError as reason:
            raise chunk.DamagedChunkError(
                f"{str(file)!r} is damaged: {reason}; amagold.load opens the draws before it, amagold.resume makes them again"
            ) from None

    def set_constants(self, group: str, values: Mapping[str, Any]) -> None:
        """Give columns that never change their one value, which readers see in place of chunks that are not there."""
        columns = dict(self.group(group).columns)
        for name, value in values.items():
            value = np.asarray(value, columns[name].dtype).item()
            if columns[name].fill != value:
                columns[name] = columns[name]._replace(fill=value)
                changed = self.group(group)._replace(columns=columns)
                _write_json(self.path / group / name / NAME, documents(changed, changed.room)[name])
        self._root = self._root._replace(groups={**self._root.groups, group: self.group(group)._replace(columns=columns)})

    def commit(self, lengths: Mapping[str, int], attributes: dict[str, Any]) -> None:
        """Show this many draws of each group, and these attributes, from now on."""
        assert not self.is_read_only
        groups = {name: group._replace(length=lengths.get(name, group.length)) for name, group in self._root.groups.items()}
        root = Root({**self._root.attributes, **attributes}, groups)
        for name in lengths:
            _write_json(self.path / name / NAME, group_document(groups[name]))
        # last: this is the commit
        write_root(self.path, root)
        # and only now is it true: what could not be written is not there
        self._root = root

    def first_damage(self, group: str) -> tuple[int, str] | None:
        """The first committed draw that cannot be read back, and why; None when all are as they were written."""
        length = self.length(group)
        worst: tuple[int, str] | None = None
        for name, column in self._written_columns(group):
            for start in range(0, length if worst is None else worst[0], column.in_chunk):
                reason = self._damage_of(group, name, start // column.in_chunk)
                if reason:
                    worst = (start, f"{group}/{name}: the chunk of draw {start} is damaged ({reason})")
                    break
        return worst

    def num_readable(self, group: str) -> int:
        """How many committed draws come before the first damage."""
        damage = self.first_damage(group)
        return self.length(group) if damage is None else damage[0]

    def clear_damage(self, group: str) -> None:
        """Remove damaged chunks, so that they can be written again, and whatever a killed process left."""
        remove_parts(self.path)
        for name, _ in self._written_columns(group):
            folder = self.path / group / name / "c" / "0"
            for upper in (self.path / group / name, folder.parent, folder):
                if upper.exists() and not upper.is_dir():
                    remove(upper)
            make_folders(self.path, folder)
            for found in folder.iterdir():
                if found.name.isdecimal() and self._damage_of(group, name, int(found.name)):
                    remove(found)

    def problems(self) -> list[str]:
        """What is wrong beside the draws, in sentences. Nothing of it is used here: it is known from elsewhere."""
        return [f"damaged metadata: {reason}; its copy was used" for reason in self._problems] + [
            f"damaged {kind}: {str(file.relative_to(self.path))!r} is not what was written; what belongs there was used"
            for kind, file, _ in self._extras()
        ]

    def repair(self) -> list[str]:
        """Write again what is wrong beside the draws; what it was, in sentences."""
        sentences = [f"{sentence}, and it is written again" for sentence in self.problems()]
        for _, file, content in list(self._extras()):
            for upper in (file.parent, *(folder for folder in file.parents if self.path in folder.parents)):
                if upper.exists() and not upper.is_dir():
                    remove(upper)
            make_folders(self.path, file.parent)
            if file.is_dir():
                remove(file)
            write_whole(file, content, durable=False)
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
        column = self.group(group).columns[name]
        try:
            chunk.read(self._chunk_file(group, name, number), chunk_shape(self.group(group), name), np.dtype(column.dtype))
        except chunk.DamagedChunkError as reason:
            return str(reason)
        return None

    def _chunk_file(self, group: str, name: str, number: int) -> Path:
        place = [0, number, *[0] * len(self.group(group).columns[name].shape)]
        return self.path / group / name / "/".join(["c", *map(str, place)])

    def _extras(self) -> Iterator[tuple[str, Path, bytes]]:
        """Files for other readers that are not what they should be: their kind, where they are, and what belongs there."""
        for name, group in self._root.groups.items():
            place = self.path / name
            if not _is_sealed(place / NAME):
                yield "metadata", place / NAME, _json(group_document(group))
            for array, document in documents(group, group.room).items():
                # between the first constant and the first commit a file knows more than the root
                is_ahead = not group.length and array in group.columns and group.columns[array].is_constant
                if not _holds(place / array / NAME, document, apart_from={"fill_value": None} if is_ahead else {}):
                    yield "metadata", place / array / NAME, _json(document)
            for axis, extent in coordinates(group).items():
                for number in range(-(-extent // in_coordinate_chunk(extent))):
                    file, wanted = _coordinate_chunk(place, axis, extent, number)
                    if not _is_chunk(file, wanted):
                        yield "coordinates", file, chunk.encode(wanted)


def _json(document: dict[str, Any]) -> bytes:
    return json.dumps(document).encode()


def _write_json(file: Path, document: dict[str, Any]) -> None:
    write_whole(file, _json(document), durable=False)


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


def _holds(file: Path, document: dict[str, Any], apart_from: Mapping[str, Any]) -> bool:
    """Whether a file says just this, apart from some of it."""
    found = _read_json(file)
    return isinstance(found, dict) and canonical({**found, **apart_from}) == canonical({**document, **apart_from})


def _is_chunk(file: Path, wanted: np.ndarray) -> bool:
    try:
        return np.array_equal(chunk.read(file, wanted.shape, wanted.dtype), wanted)
    except chunk.DamagedChunkError:
        return False


def _write_coordinate(group: Path, axis: str, extent: int, number: int) -> None:
    file, values = _coordinate_chunk(group, axis, extent, number)
    file.parent.mkdir(exist_ok=True)
    write_whole(file, chunk.encode(values), durable=False)


def _coordinate_chunk(group: Path, axis: str, extent: int, number: int) -> tuple[Path, np.ndarray]:
    """The numbers of a chunk of a coordinate, with zeros behind the last, and their file."""
    step = in_coordinate_chunk(extent)
    numbers = np.arange(number * step, (number + 1) * step)
    return group / axis / "c" / str(number), np.where(numbers < extent, numbers, 0)
