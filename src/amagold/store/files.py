"""Writing a file so that it is there whole or not at all."""

import os
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
