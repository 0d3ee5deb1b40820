"""The root's metadata: what the run says of itself, and what readers see of its arrays.

Both are under one checksum. A second copy lies beside the checkpoints, so that damage to one
file loses nothing.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from amagold.core.files import UNUSABLE, make_folders, read_whole, write_whole
from amagold.store._array_layout import GROUP, ArrayGroup, documents, read_group
from amagold.store._names import is_plain
from amagold.store._seal import UnreadableError, canonical, seal, unseal

PRIVATE = ".amagold"  # lock, checkpoints and the second copy, beside the arrays
NAME = "zarr.json"
MOST_BYTES = 2**26


class Root(NamedTuple):
    """The facts that the root's metadata is made of."""

    attributes: Mapping[str, Any]
    groups: Mapping[str, ArrayGroup]


def places(path: Path) -> tuple[Path, Path]:
    """The root's metadata and its second copy."""
    return path / NAME, path / PRIVATE / NAME


def write_root(path: Path, root: Root) -> None:
    """Replace both files. The copy first: readers see the other, and it is never behind
    checkpoints.
    """
    content = json.dumps(root_document(root), indent=1).encode()
    for file in reversed(places(path)):
        make_folders(path, file.parent)
        write_whole(file, content, durable=False)


def read_root(path: Path) -> tuple[Root, list[str]]:
    """The root of a run, and what was found wrong on the way; raises when no copy is left."""
    problems = []
    for file in places(path):
        try:
            return decode_root(read_whole(file, MOST_BYTES)), problems
        except OSError as reason:
            problems.append(f"{str(file)!r} cannot be read ({reason.strerror or reason})")
        except UnreadableError as reason:
            problems.append(f"{str(file)!r} cannot be used: {reason}")
    raise UnreadableError("; ".join(problems))


def is_intact(file: Path, root: Root) -> bool:
    """Whether a file holds just this root."""
    try:
        found = decode_root(read_whole(file, MOST_BYTES))
    except (OSError, UnreadableError):
        return False
    return canonical(root_document(found)) == canonical(root_document(root))


def decode_root(content: bytes) -> Root:
    """The facts; raises `UnreadableError` unless the checksum matches and every array is ours."""
    try:
        document, facts = unseal(json.loads(content))
        metadata = document["consolidated_metadata"]["metadata"]
        root = Root(document["attributes"], _read_groups(metadata, facts["room"]))
        if canonical(root_document(root)) != canonical(seal(document, **facts)):
            raise UnreadableError("it is not what amagold writes")
        return root
    except UnreadableError:
        raise
    except UNUSABLE as reason:
        raise UnreadableError(f"{type(reason).__name__}: {reason}") from None


def root_document(root: Root) -> dict[str, Any]:
    """The root's metadata as it is written."""
    metadata: dict[str, Any] = {}
    for name, group in root.groups.items():
        metadata[name] = GROUP
        for array, entry in documents(group, group.length).items():
            metadata[f"{name}/{array}"] = entry
    document = {**GROUP, "attributes": dict(root.attributes)}
    document["consolidated_metadata"] = _consolidated(metadata)
    return seal(document, room={name: group.room for name, group in root.groups.items()})


def group_document(group: ArrayGroup) -> dict[str, Any]:
    """The metadata of a group, for those who open it alone."""
    return seal({**GROUP, "consolidated_metadata": _consolidated(documents(group, group.length))})


def _read_groups(metadata: Mapping[str, Any], room: Mapping[str, Any]) -> dict[str, ArrayGroup]:
    """The groups and their arrays; a name that leads out of the store is refused."""
    arrays: dict[str, dict[str, Any]] = {name: {} for name in room}
    for path, entry in metadata.items():
        name, separator, array = path.partition("/")
        is_name = is_plain(name) and not name.startswith(".") and (is_plain(array) or not separator)
        if name not in arrays or not is_name:
            raise UnreadableError(f"{path!r} is not a name within the store")
        if separator:
            arrays[name][array] = entry
    return {name: read_group(name, room[name], found) for name, found in arrays.items()}


def _consolidated(metadata: dict[str, Any]) -> dict[str, Any]:
    return {"kind": "inline", "must_understand": False, "metadata": metadata}
