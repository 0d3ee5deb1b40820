"""Tables as they come: data frames of any library that narwhals knows, and files."""

from pathlib import Path
from typing import Any

from amagold.core.files import as_path
from amagold.core.optional_packages import required

FILES = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".arrow", ".feather", ".ipc")


def read_table(given: Any, name: str = "table") -> Any:
    """The table as a narwhals frame, or a sentence."""
    if isinstance(given, (str, Path)):
        given = _read_file(as_path(name, given, "a file"), name)
    nw = required("narwhals", "tables")
    try:
        frame = nw.from_native(given)
    except TypeError:
        raise ValueError(
            f"{name} must be a data frame (pandas, polars, pyarrow, DuckDB) or the path of a CSV, "
            f"Parquet or Arrow file, got {type(given).__name__}"
        ) from None
    if isinstance(frame, nw.LazyFrame):
        frame = frame.collect()
    if len(set(frame.columns)) < len(frame.columns):
        twice = next(column for column in frame.columns if frame.columns.count(column) > 1)
        raise ValueError(f"{name} must have a name for every column, but {twice!r} is there twice")
    if not len(frame):
        raise ValueError(f"{name} must have at least one row, got none")
    return frame


def _read_file(path: Path, name: str) -> Any:
    if not path.is_file():
        raise ValueError(f"{name} must be a file that exists, but {str(path)!r} is none")
    suffix = path.suffix.lower()
    if suffix not in FILES:
        raise ValueError(
            f"{name} must be a CSV, Parquet or Arrow file ({', '.join(FILES)}), got {path.name!r}"
        )
    pyarrow = required("pyarrow", "tables")
    try:
        if suffix in (".parquet", ".pq"):
            from pyarrow import parquet

            return parquet.read_table(path)
        if suffix in (".arrow", ".feather", ".ipc"):
            from pyarrow import feather

            return feather.read_table(path)
        return _read_text(path, suffix)
    except (pyarrow.ArrowException, OSError, ValueError) as reason:
        why = str(reason).splitlines()[0]
        raise ValueError(f"{name} must be a whole file, but {str(path)!r}: {why}") from None


def _read_text(path: Path, suffix: str) -> Any:
    from pyarrow import csv

    with path.open("rb") as file:
        first = file.readline(2**20)
    # the sign that parts the header most often, unless the suffix says it
    signs = {sign: first.count(sign.encode()) for sign in (",", ";", "\t", "|")}
    sign = "\t" if suffix == ".tsv" else max(signs, key=lambda sign: signs[sign])
    return csv.read_csv(
        path,
        parse_options=csv.ParseOptions(delimiter=sign, newlines_in_values=True),
        convert_options=csv.ConvertOptions(strings_can_be_null=True),
    )
