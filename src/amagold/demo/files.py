"""Files that appear whole or not at all."""

import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 200


def make_folder(path: str | Path) -> Path:
    """The folder, made if it is missing."""
    folder = Path(path)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"output must be a folder that can be written, got {str(path)!r} ({error.strerror}); name another one") from None
    return folder


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary name beside `path`, renamed to it at the end; after an error or an interruption nothing stays behind."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=path.suffix)
    os.close(handle)
    temporary = Path(name)
    try:
        yield temporary
        temporary.chmod(0o644)  # mkstemp makes files private
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def write_picture(path: Path, figure: "Figure") -> None:
    with replacing(path) as temporary:
        figure.savefig(temporary, dpi=DOTS_PER_INCH, format="png")


def write_json(path: Path, content: dict[str, Any]) -> None:
    with replacing(path) as temporary:
        temporary.write_text(json.dumps(content, indent=2) + "\n")
