"""Checkpoints: named arrays and settings in one file with a checksum. Raw numbers and JSON, no
pickle: safe to open from anywhere.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np

from amagold.core import trees
from amagold.core.files import read_whole, remove, write_whole

MAGIC = b"amagold checkpoint 1\n"
# the newest ones; the first of all and the one at the first draw stay too, so that damaged draws
# can be made again
NUM_KEPT = 2


PHASES = ("warmup", "sampling")
NAME = re.compile(r"(\d+)-(warmup|sampling)-\d+\.checkpoint", re.ASCII)
# numbers that the rest of a run depends on
SECONDS = ("warmup_seconds", "sampling_seconds", "compile_seconds")
NOTES = {"warmup_done": int, "num_steps": int} | dict.fromkeys(SECONDS, float)


class DamagedError(Exception):
    """A checkpoint that is not what was written."""


class Checkpoint(NamedTuple):
    """Where a run is: `phase` is "warmup" or "sampling", `done` counts its transitions or draws."""

    phase: str
    done: int
    arrays: dict[str, np.ndarray]
    notes: dict[str, Any]


def pack(name: str, tree: trees.PyTree) -> dict[str, np.ndarray]:
    """The leaves of a tree as named arrays."""
    return {
        f"{name}.{number}": np.asarray(leaf) for number, leaf in enumerate(jax.tree.leaves(tree))
    }


def unpack(name: str, arrays: dict[str, np.ndarray], like: trees.PyTree) -> trees.PyTree:
    """The tree back again, in the form of `like`; raises when what was saved does not fit it."""
    wanted, structure = jax.tree.flatten(like)
    found = [arrays.get(f"{name}.{number}") for number in range(len(wanted))]
    if f"{name}.{len(wanted)}" in arrays or any(leaf is None for leaf in found):
        raise ValueError(
            f"target_or_sampler must be the one that began this run, but its {name} has other "
            "parts; pass the same one"
        )
    for leaf, other in zip(found, wanted, strict=True):
        assert leaf is not None
        if leaf.shape != tuple(other.shape) or leaf.dtype != other.dtype:
            raise ValueError(
                f"target_or_sampler must be the one that began this run, but its {name} has shape "
                f"{tuple(other.shape)} of {other.dtype} "
                f"where the run has {leaf.shape} of {leaf.dtype}; pass the same one"
            )
    return jax.tree.unflatten(structure, found)


def encode(checkpoint: Checkpoint) -> bytes:
    """Magic line, a line of JSON with the checksum of the rest, a line of JSON that describes the
    arrays, the arrays.
    """
    contents = [np.ascontiguousarray(array) for array in checkpoint.arrays.values()]
    described = [
        {"name": name, "dtype": array.dtype.name, "shape": list(np.shape(array))}
        for name, array in checkpoint.arrays.items()
    ]
    header = {
        "phase": checkpoint.phase,
        "done": checkpoint.done,
        "notes": checkpoint.notes,
        "arrays": described,
    }
    body = b"".join([json.dumps(header).encode(), b"\n", *(array.tobytes() for array in contents)])
    seal = {"sha256": hashlib.sha256(body).hexdigest(), "bytes": len(body)}
    return MAGIC + json.dumps(seal).encode() + b"\n" + body


def decode(content: bytes) -> Checkpoint:
    """The checkpoint back again; raises `DamagedError` if one bit differs."""
    try:
        if not content.startswith(MAGIC):
            raise DamagedError("it does not begin like a checkpoint")
        seal_line, body = content[len(MAGIC) :].split(b"\n", 1)
        if hashlib.sha256(body).hexdigest() != json.loads(seal_line)["sha256"]:
            raise DamagedError("its checksum does not match")
        header_line, numbers = body.split(b"\n", 1)
        header = json.loads(header_line)
        arrays, start = {}, 0
        for entry in header["arrays"]:
            kind, shape = _dtype(entry["dtype"]), tuple(entry["shape"])
            if any(type(axis) is not int or axis < 0 for axis in shape):
                raise DamagedError(f"it has an array of shape {shape!r}")
            stop = start + kind.itemsize * int(np.prod(shape, dtype=np.int64))
            arrays[entry["name"]] = np.frombuffer(numbers[start:stop], kind).reshape(shape)
            start = stop
        return Checkpoint(header["phase"], header["done"], arrays, header["notes"])
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as reason:
        raise DamagedError(f"it cannot be read ({type(reason).__name__}: {reason})") from None


def _dtype(name: str) -> np.dtype:
    """A type of plain numbers, those of machine learning among them."""
    found = np.dtype(name)
    if found.hasobject or found.fields is not None or found.subdtype or found.name != name:
        raise DamagedError(f"it has an array of {name!r}")
    return found


def _check_run(checkpoint: Checkpoint) -> None:
    """Raise `DamagedError` unless this is where a run was."""
    if checkpoint.phase not in PHASES or type(checkpoint.done) is not int or checkpoint.done < 0:
        raise DamagedError("it does not say where the run was")
    for name, kind in NOTES.items():
        value: Any = checkpoint.notes.get(name) if isinstance(checkpoint.notes, dict) else None
        if type(value) not in (int, kind) or not 0 <= value < float("inf"):
            raise DamagedError(f"its {name} is {value!r}")


class CheckpointFolder:
    """The checkpoints of one run, oldest first by their numbers."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def files(self) -> list[Path]:
        found = self.folder.glob("*.checkpoint")
        return sorted(path for path in found if NAME.fullmatch(path.name))

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a new one, then remove those that are no longer needed."""
        self.folder.mkdir(exist_ok=True)
        files = self.files()
        number = int(files[-1].name.split("-")[0]) + 1 if files else 0
        write_whole(
            self.folder / f"{number:09d}-{checkpoint.phase}-{checkpoint.done}.checkpoint",
            encode(checkpoint),
            durable=True,
        )
        for old in files[: 1 - NUM_KEPT]:
            if not old.name.endswith("-sampling-0.checkpoint") and old != files[0]:
                remove(old)

    def load(self, at_most: Mapping[str, int]) -> tuple[Checkpoint | None, list[str]]:
        """The newest good one that has done no more than `at_most` of its phase, and what was wrong
        with newer ones.

        Newer ones are deleted once it is found; if there is none, nothing is.
        """
        problems, newer = [], []
        for path in reversed(self.files()):
            try:
                checkpoint = decode(read_whole(path))
                _check_run(checkpoint)
            except (DamagedError, OSError) as reason:
                problems.append(
                    f"checkpoint {path.name} is damaged: {reason}; an earlier one is used"
                )
                newer.append(path)
                continue
            if checkpoint.done <= at_most.get(checkpoint.phase, checkpoint.done):
                for later in newer:
                    remove(later)
                return checkpoint, problems
            newer.append(path)
        return None, problems
