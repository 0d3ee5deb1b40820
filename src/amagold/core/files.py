"""Reading and writing files and folders: there whole or not at all, and never through a link."""

import glob
import math
import os
import shutil
import stat
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

# whatever a stranger wrote: wrong types, missing keys, endless nesting
UNUSABLE = (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError)


def as_path(name: str, value: Any, what: str) -> Path:
    """The path that an argument names; raises one sentence when it cannot be one."""
    text = os.fspath(value) if isinstance(value, (str, os.PathLike)) else None
    if not isinstance(text, str) or not text or "\0" in text:
        why = "no path has null characters" if text and isinstance(text, str) else "give a path"
        raise ValueError(f"{name} must be {what}, got {value!r}; {why}")
    return Path(text)


def read_whole(path: Path, most_bytes: float = math.inf) -> bytes:
    """The content of a file; raises `OSError` for a link, a folder, a pipe, or more bytes."""
    # without waiting, because a pipe has no end
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    with open(os.open(path, flags | getattr(os, "O_CLOEXEC", 0)), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError("it is not a file")
        if found.st_size > most_bytes:
            raise OSError(f"it has {found.st_size} bytes where at most {most_bytes} belong")
        return file.read(found.st_size)


def write_whole(path: Path, content: bytes, *, durable: bool) -> None:
    """Replace the file in one move; with `durable` it survives a power failure too."""
    part = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        with part.open("wb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    if durable:
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)


def make_folders(inside: Path, path: Path) -> None:
    """The folders of `path` below `inside`, which must be there: it may have been moved away."""
    missing = []
    for folder in (path, *path.parents):
        if folder == inside or folder.is_dir():
            break
        missing.append(folder)
    for folder in reversed(missing):
        folder.mkdir(exist_ok=True)


def remove(path: Path) -> None:
    """Delete whatever is there: a file, a link, or a folder with all it holds."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def first_link(folder: Path) -> Path | None:
    """A symbolic link within the folder; None when there is none."""
    try:
        entries = list(os.scandir(folder))
    except (FileNotFoundError, NotADirectoryError):  # another process is at work here
        return None
    for entry in entries:
        if entry.is_symlink():
            return Path(entry.path)
        found = first_link(Path(entry.path)) if entry.is_dir(follow_symlinks=False) else None
        if found is not None:
            return found
    return None


def remove_parts(folder: Path) -> None:
    """Delete what a killed process left half-written."""
    for part in folder.rglob("*.partial"):
        if part.is_file():
            part.unlink(missing_ok=True)


def name_in_the_making(path: Path) -> Path:
    """A hidden name beside `path` for a folder that is not whole yet; it says which process is
    making it.
    """
    return path.with_name(f".{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.partial")


def remove_abandoned(path: Path) -> None:
    """Delete folders that were to become `path`, made by processes that are gone."""
    for folder in _in_the_making(path):
        number = folder.name.removeprefix(f".{path.name}.").split("-")[0]
        if number.isdigit() and not _is_alive(int(number)):
            shutil.rmtree(folder, ignore_errors=True)


def _in_the_making(path: Path) -> Iterator[Path]:
    return path.absolute().parent.glob(f".{glob.escape(path.name)}.*.partial")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True
