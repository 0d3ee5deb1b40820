"""Whole compiled programs in files, by the words of what they depend on.

JAX's own cache is asked with a lowered program, and tracing and lowering take most of the time that
a second process needs before its first draw. These are found before anything is traced. Like those
of JAX they are run as they are found, so they are looked for only in the folder that
`program_cache` has found to be the user's alone.
"""

import contextlib
import functools
import hashlib
import os
import pickle
import re
import zlib
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax.experimental import serialize_executable

from amagold.core.files import read_whole, remove_parts, write_whole

ENDING = ".program"
DIGEST = hashlib.sha256().digest_size
LAPACK = "lapack_"
HARMLESS = ("Sharding", "SPMD", "annotate_device_placement")  # notes to the compiler


def find_program(folder: Path, words: str, varying: list[Any]) -> Any:
    """The program, ready to be called with arguments like these; None where it is not kept, or
    spoilt.
    """
    path = folder / (words + ENDING)
    try:
        content = read_whole(path)
    except OSError:
        return None
    try:
        packed = content[DIGEST:]
        if hashlib.sha256(packed).digest() != content[:DIGEST]:
            raise ValueError("spoilt")
        numbers, needs_lapack, executable, form = pickle.loads(zlib.decompress(packed))
        if needs_lapack:
            _load_lapack()
        devices = {device.id: device for device in jax.devices()}
        program = serialize_executable.deserialize_and_load(
            executable,
            jax.tree.structure((tuple(varying), {})),
            form,
            execution_devices=[devices[number] for number in numbers],
        )
    except Exception:  # an experimental part of JAX: whatever fails, it is compiled again
        path.unlink(missing_ok=True)
        return None
    with contextlib.suppress(OSError):
        os.utime(path)  # when it was last used
    return program


def keep_program(folder: Path, words: str, lowered: Any, program: Any, most_bytes: int) -> None:
    """If JAX can write it down, and it calls nothing of this process."""
    try:
        called = set(re.findall(r"custom_call @(\w+)", lowered.as_text()))
        is_known = all(name.startswith((LAPACK, *HARMLESS)) for name in called)
        if not is_known or _calls_back(program):
            return
        executable, _, form = serialize_executable.serialize(program)
        numbers = [device.id for device in program.runtime_executable().local_devices()]
        needs_lapack = any(name.startswith(LAPACK) for name in called)
        whole = pickle.dumps((numbers, needs_lapack, executable, form))
        packed = zlib.compress(whole, level=1)
    except Exception:  # as above
        return
    with contextlib.suppress(OSError):
        folder.mkdir(mode=0o700, exist_ok=True)
        _make_room(folder, most_bytes - len(packed))
        content = hashlib.sha256(packed).digest() + packed
        write_whole(folder / (words + ENDING), content, durable=False)


def _calls_back(program: Any) -> bool:
    executable = program._executable._unloaded_executable
    return any(bool(getattr(executable, name, True)) for name in ("host_callbacks", "keepalive"))


@functools.cache
def _load_lapack() -> None:
    """JAX looks up LAPACK's functions when it first lowers one, and a program that was never
    lowered here would call what is not there.
    """
    jax.jit(jnp.linalg.cholesky).lower(jax.ShapeDtypeStruct((1, 1), jnp.float32))


def _make_room(folder: Path, most_bytes: int) -> None:
    """Those that were used longest ago go first."""
    remove_parts(folder)
    found = [(path, path.stat()) for path in folder.glob("*" + ENDING)]
    total = sum(each.st_size for _, each in found)
    for path, each in sorted(found, key=lambda item: item[1].st_mtime):
        if total <= most_bytes:
            return
        path.unlink(missing_ok=True)
        total -= each.st_size
