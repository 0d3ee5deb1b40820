"""Tables as they come: data frames of any library that narwhals knows, and files."""

import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from amagold.core.files import as_path
from amagold.core.optional_packages import required
from amagold.core.progress import Steps, show_steps
from amagold.core.scratch import is_large
from amagold.data import Data
from amagold.data._row_store import is_row_store
from amagold.tables._column_names import check_columns
from amagold.tables._read_stored import read_data, read_store
from amagold.tables._read_text import read_text
from amagold.tables._row_batches import (
    ARROW,
    FILES,
    PARQUET,
    batches_of,
    expected_bytes,
    files_in,
    suffix_of,
)
from amagold.tables._spooled_rows import spooled


def read_table(
    given: Any,
    name: str = "table",
    columns: Sequence[str] | None = None,
    shown: bool | None = None,
    out_of_core: bool | None = None,
) -> Any:
    """The table as a narwhals frame, or a sentence.

    Args:
      given: a data frame or a path.
      name: of the argument, for sentences.
      columns: that are needed; None takes all.
      shown: whether to show how far reading is; None does on a terminal.
      out_of_core: whether the rows of a file are kept in temporary ones; None does so where they
        are large for this machine's memory.
    """
    if isinstance(given, (str, Path)):
        given = _read_path(as_path(name, given, "a file"), name, columns, shown, out_of_core)
    nw = required("narwhals", "tables")
    if isinstance(given, Data):
        required("pyarrow", "tables")
        with show_steps("Reading rows", shown=shown) as report:
            given = read_data(given, columns, report)
    try:
        frame = nw.from_native(_without_views(given))
    except TypeError:
        raise ValueError(
            f"{name} must be a data frame (pandas, polars, pyarrow, DuckDB) or the path of a CSV, "
            f"Parquet or Arrow file, got {type(given).__name__}"
        ) from None
    except Exception as reason:  # narwhals' own, for names that are there twice
        why = str(reason).splitlines()[0]
        raise ValueError(f"{name} must be a usual data frame, but {why}") from None
    known = frame.collect_schema().names()
    check_columns(columns, known, name)
    if isinstance(frame, nw.LazyFrame):
        frame = frame if columns is None else frame.select(*dict.fromkeys(columns))
        frame = _sunk(frame, shown) if out_of_core else frame.collect()
    if not len(frame):
        raise ValueError(f"{name} must have at least one row, got none")
    return frame


def _without_views(given: Any) -> Any:
    """Views of texts, in Arrow's tables, as texts: Arrow itself cannot sort or choose them yet."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is None or not isinstance(given, pyarrow.Table):
        return given
    for place, field in enumerate(given.schema):
        if pyarrow.types.is_string_view(field.type):
            texts = given.column(place).cast(pyarrow.large_string())
            given = given.set_column(place, field.name, texts)
    return given


def _sunk(frame: Any, shown: bool | None) -> Any:
    """What a lazy frame gives, by way of a file instead of memory."""
    nw = required("narwhals", "tables")
    with tempfile.TemporaryDirectory(prefix="amagold-") as folder:
        file = Path(folder) / "rows.parquet"
        frame.sink_parquet(file)
        with show_steps("Reading rows", shown=shown) as report:
            found = spooled(batches_of(file, None, report))
    return nw.from_native(found, eager_only=True)


def _read_path(
    path: Path,
    name: str,
    columns: Sequence[str] | None,
    shown: bool | None,
    out_of_core: bool | None,
) -> Any:
    _check_path(path, name)
    pyarrow = required("pyarrow", "tables")
    with show_steps(f"Reading {path.name}", shown=shown) as report:
        try:
            if out_of_core is None:
                out_of_core = is_large(expected_bytes(path, columns))
            if out_of_core:
                return spooled(batches_of(path, columns, report))
            return _read_file(path, name, columns, report)
        except (pyarrow.ArrowException, OSError, EOFError) as reason:
            why = str(reason).splitlines()[0]
            raise ValueError(f"{name} must be a whole file, but {str(path)!r}: {why}") from None


def _check_path(path: Path, name: str) -> None:
    if path.is_dir():
        if not is_row_store(path) and not files_in(path):
            raise ValueError(
                f"{name} must be a file, a row store or a folder of tables, but {str(path)!r} "
                f"holds none ({', '.join(FILES)})"
            )
    elif not path.is_file():
        raise ValueError(f"{name} must be a file that exists, but {str(path)!r} is none")
    elif suffix_of(path) not in FILES:
        raise ValueError(
            f"{name} must be a CSV, Parquet or Arrow file ({', '.join(FILES)}), got {path.name!r}"
        )


def _read_file(path: Path, name: str, columns: Sequence[str] | None, report: Steps) -> Any:
    if path.is_dir():
        return _read_folder(path, name, columns, report)
    suffix = suffix_of(path)
    if suffix in PARQUET:
        return _read_parquet(path, columns, report)
    if suffix in ARROW:
        return _read_arrow(path, columns)
    return read_text(path, suffix, columns, report)


def _read_folder(path: Path, name: str, columns: Sequence[str] | None, report: Steps) -> Any:
    """A row store, or files of Parquet or Arrow, one after the other."""
    pyarrow = required("pyarrow", "tables")
    if is_row_store(path):
        return read_store(path, columns, report)
    files = files_in(path)
    found = [_read_file(file, name, columns, report) for file in files]
    if len({tuple(each.column_names) for each in found}) > 1:
        raise ValueError(f"{name} must have the same columns in all files of {str(path)!r}")
    try:
        return pyarrow.concat_tables(found, promote_options="permissive")
    except pyarrow.ArrowException as reason:
        why = str(reason).splitlines()[0]
        raise ValueError(f"{name} must have columns of one type in all files, but {why}") from None


def _read_parquet(path: Path, columns: Sequence[str] | None, report: Any) -> Any:
    """One group of rows after the other."""
    import pyarrow
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        check_columns(columns, file.schema_arrow.names)
        chosen = None if columns is None else list(dict.fromkeys(columns))
        number, found = file.num_row_groups, []
        for group in range(number):
            found.append(file.read_row_group(group, columns=chosen))
            report(group + 1, number)
        return pyarrow.concat_tables(found) if found else file.read(columns=chosen)


def _read_arrow(path: Path, columns: Sequence[str] | None) -> Any:
    """A file or a stream of record batches."""
    import pyarrow
    from pyarrow import ipc

    with pyarrow.OSFile(str(path)) as file:
        magic = file.read(6)
    with pyarrow.memory_map(str(path)) as file:
        if magic == b"ARROW1":
            table = ipc.open_file(file).read_all()
        elif magic[:4] == b"FEA1":
            from pyarrow import feather

            table = feather.read_table(path)
        else:
            table = ipc.open_stream(file).read_all()
    check_columns(columns, table.column_names)
    return table if columns is None else table.select(list(dict.fromkeys(columns)))
