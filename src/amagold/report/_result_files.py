"""Pictures, numbers and pages as files that appear whole or not at all."""

import io
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from amagold.core.files import as_path, write_whole

if TYPE_CHECKING:
    from matplotlib.figure import Figure

DOTS_PER_INCH = 200


def make_folder(path: str | Path) -> Path:
    """The folder, made if it is missing."""
    folder = as_path("output", path, "a folder to write to")
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(
            f"output must be a folder that can be written, got {str(path)!r} ({error.strerror}); "
            "name another one"
        ) from None
    return folder


def write_picture(path: Path, figure: "Figure") -> None:
    picture = io.BytesIO()
    figure.savefig(picture, dpi=DOTS_PER_INCH, format="png")
    write_whole(path, picture.getvalue(), durable=False)


def write_json(path: Path, content: dict[str, Any]) -> None:
    write_text(path, json.dumps(content, indent=2) + "\n")


def write_text(path: Path, text: str) -> None:
    write_whole(path, text.encode(), durable=False)
