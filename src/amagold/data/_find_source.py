"""Which kind of source a path is."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amagold.core.files import as_path
from amagold.data._row_sources import ARROW, PARQUET, RowSource, arrow_source, zarr_source

ZARR = ("zarr.json", ".zarray", ".zgroup")


def find_source(name: str, given: Any, columns: Sequence[str] | None) -> RowSource:
    """The rows behind a path or a list of paths; raises one sentence where there are none."""
    if isinstance(given, (list, tuple)):
        files = [as_path(name, each, "a list of files") for each in given]
        return _tables(name, files, columns)
    path = as_path(name, given, "a file or a folder")
    if not path.exists():
        raise ValueError(f"{name} must exist, but {str(path)!r} does not")
    if is_zarr(path):
        return zarr_source(path, columns)
    if path.is_dir():
        inside = sorted(file for file in path.iterdir() if file.suffix in PARQUET + ARROW)
        if not inside:
            raise ValueError(
                f"{name} must hold rows, but the folder {str(path)!r} has none of these: "
                f"{_wanted()}"
            )
        return _tables(name, inside, columns)
    return _tables(name, [path], columns)


def is_zarr(path: Path) -> bool:
    return path.is_dir() and any((path / file).is_file() for file in ZARR)


def _tables(name: str, files: Sequence[Path], columns: Sequence[str] | None) -> RowSource:
    if not files:
        raise ValueError(f"{name} must name at least one file, got none")
    for file in files:
        if file.suffix not in PARQUET + ARROW:
            raise ValueError(f"{name} must be {_wanted()}, got {str(file)!r}")
        if not file.is_file():
            raise ValueError(f"{name} must exist, but {str(file)!r} does not")
    return arrow_source(files, columns)


def _wanted() -> str:
    return "a row store, .npy, Parquet (.parquet), Arrow (.arrow, .feather) or Zarr files"
