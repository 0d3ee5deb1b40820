"""Writing files and folders so that they are there whole or not at all."""

import glob
import os
import shutil
import uuid
from pathlib import Path


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


def remove_parts(folder: Path) -> None:
    """Delete what a killed process left half-written."""
    for part in folder.rglob("*.partial"):
        part.unlink(missing_ok=True)


def name_in_the_making(path: Path) -> Path:
    """A hidden name beside `path` for a folder that is not whole yet; it says which process is making it."""
    return path.with_name(f".{path.name}.{os.getpid()}-{uuid.uuid4().hex[:8]}.partial")


def remove_abandoned(path: Path) -> None:
    """Delete folders that were to become `path`, made by processes that are gone."""
    for folder in path.absolute().parent.glob(f".{glob.escape(path.name)}.*.partial"):
        number = folder.name.removeprefix(f".{path.name}.").split("-")[0]
        if number.isdigit() and not _is_alive(int(number)):
            shutil.rmtree(folder, ignore_errors=True)


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except OSError:  # somebody else's
        return True
    return True
