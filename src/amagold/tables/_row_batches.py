"""The rows of files, some at a time, as Arrow's record batches."""

import gzip
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from amagold.core.progress import Steps
from amagold.data._row_store import is_row_store, open_rows, read_manifest
from amagold.tables._column_names import check_columns
from amagold.tables._read_text import (
    TEXTS,
    CountedFile,
    WatchedText,
    check_texts,
    reading_options,
    text_header,
)

PARQUET = (".parquet", ".pq")
ARROW = (".arrow", ".feather", ".ipc")
FILES = (*TEXTS, *PARQUET, *ARROW)
ROWS_AT_ONCE = 2**17
UNPACKED = 6  # times the size of a compressed text
CHARACTERS = 5  # of a text that make a number of eight bytes
# what a column of a text may turn out to be further down
WIDER = {"null": "int64", "int64": "double", "double": "string"}
TROUBLED = re.compile(r"In CSV column #(\d+)")


def suffix_of(path: Path) -> str:
    """`.csv` of `flights.csv.gz` too."""
    found = [suffix.lower() for suffix in path.suffixes]
    return found[-2] if found[-1:] == [".gz"] and len(found) > 1 else "".join(found[-1:])


def files_in(folder: Path) -> list[Path]:
    """Those of a folder that hold rows, by name."""
    return sorted(file for file in folder.iterdir() if suffix_of(file) in FILES)


def expected_bytes(path: Path, columns: Sequence[str] | None) -> float:
    """About how much memory the rows of a file or a folder would take, eight bytes a value."""
    if path.is_dir():
        if is_row_store(path):
            manifest = read_manifest(path)
            width = len(manifest.fields) if columns is None else len(set(columns))
            return 8.0 * width * manifest.num_rows
        return float(sum(expected_bytes(file, columns) for file in files_in(path)))
    suffix = suffix_of(path)
    if suffix in PARQUET:
        from pyarrow import parquet

        with parquet.ParquetFile(path) as file:
            width = len(file.schema_arrow.names) if columns is None else len(set(columns))
            return 8.0 * width * file.metadata.num_rows
    size = float(path.stat().st_size)
    if suffix not in TEXTS:
        return size
    _, names = text_header(path, suffix)
    share = 1.0 if columns is None else min(1.0, len(set(columns)) / max(1, len(names)))
    packed = UNPACKED if path.suffix.lower() == ".gz" else 1
    return 8.0 / CHARACTERS * size * packed * share


def batches_of(path: Path, columns: Sequence[str] | None, report: Steps) -> Iterator[Any]:
    """Record batches of a file, a folder of files or a row store, with one schema."""
    if path.is_dir():
        if is_row_store(path):
            yield from _of_store(path, columns, report)
            return
        files = files_in(path)
        schema = _common_schema([_first_schema(file, columns) for file in files])
        for file in files:
            for batch in batches_of(file, columns, report):
                yield batch.select(schema.names).cast(schema)
        return
    suffix = suffix_of(path)
    if suffix in PARQUET:
        yield from _of_parquet(path, columns, report)
    elif suffix in ARROW:
        yield from _of_arrow(path, columns, report)
    else:
        yield from _of_text(path, suffix, columns, report)


def _first_schema(file: Path, columns: Sequence[str] | None) -> Any:
    return next(iter(batches_of(file, columns, lambda done, total: None))).schema


def _common_schema(schemas: list[Any]) -> Any:
    import pyarrow

    if len({tuple(sorted(schema.names)) for schema in schemas}) > 1:
        raise ValueError("table must have the same columns in all files of the folder")
    try:
        return pyarrow.unify_schemas(schemas, promote_options="permissive")
    except pyarrow.ArrowException as reason:
        why = str(reason).splitlines()[0]
        raise ValueError(f"table must have columns of one type in all files, but {why}") from None


def _of_parquet(path: Path, columns: Sequence[str] | None, report: Steps) -> Iterator[Any]:
    from pyarrow import parquet

    with parquet.ParquetFile(path) as file:
        check_columns(columns, file.schema_arrow.names)
        chosen = None if columns is None else list(dict.fromkeys(columns))
        done, total = 0, file.metadata.num_rows
        for batch in file.iter_batches(ROWS_AT_ONCE, columns=chosen):
            yield batch
            done += batch.num_rows
            report(done, total)


def _of_arrow(path: Path, columns: Sequence[str] | None, report: Steps) -> Iterator[Any]:
    import pyarrow
    from pyarrow import feather, ipc

    with pyarrow.OSFile(str(path)) as file:
        magic = file.read(6)
    if magic[:4] == b"FEA1":
        table = feather.read_table(path)
        check_columns(columns, table.column_names)
        chosen = table if columns is None else table.select(list(dict.fromkeys(columns)))
        yield from chosen.to_batches(ROWS_AT_ONCE)
        return
    with pyarrow.memory_map(str(path)) as file:
        if magic == b"ARROW1":
            opened: Any = ipc.open_file(file)
            number = opened.num_record_batches
            found = map(opened.get_batch, range(number))
        else:
            opened, number = ipc.open_stream(file), 0
            found = iter(opened)
        check_columns(columns, opened.schema.names)
        names = opened.schema.names if columns is None else list(dict.fromkeys(columns))
        for place, batch in enumerate(found):
            for start in range(0, batch.num_rows, ROWS_AT_ONCE):
                yield batch.select(names).slice(start, ROWS_AT_ONCE)
            report(place + 1, max(number, place + 1))


def _of_text(
    path: Path, suffix: str, columns: Sequence[str] | None, report: Steps
) -> Iterator[Any]:
    """Types are those that all rows have: found by reading, and by reading again where a later row
    does not fit.
    """
    types: dict[str, str] = {}
    while not _all_fit(path, suffix, columns, types, report):
        pass
    yield from _text_batches(path, suffix, columns, types, report)


def _all_fit(
    path: Path, suffix: str, columns: Sequence[str] | None, types: dict[str, str], report: Steps
) -> bool:
    """Whether all rows are of these types; where not, the type of one column is made wider."""
    import pyarrow

    schema = None
    try:
        for batch in _text_batches(path, suffix, columns, types, report):
            schema = batch.schema
    except pyarrow.ArrowInvalid as reason:
        place = TROUBLED.search(str(reason))
        if place is None:
            raise
        _, names = text_header(path, suffix)
        name = names[int(place[1])]
        was = types.get(name) or _first_types(path, suffix, columns, types)[name]
        types[name] = WIDER.get(was, "string")
        if types[name] == was:
            raise
        return False
    if schema is not None:
        types.update({field.name: str(field.type) for field in schema})
    return True


def _first_types(
    path: Path, suffix: str, columns: Sequence[str] | None, types: dict[str, str]
) -> dict[str, str]:
    """As the first rows have them."""
    batches = _text_batches(path, suffix, columns, types, lambda done, total: None)
    return {field.name: str(field.type) for field in next(batches).schema}


def _text_batches(
    path: Path, suffix: str, columns: Sequence[str] | None, types: dict[str, str], report: Steps
) -> Iterator[Any]:
    import pyarrow
    from pyarrow import csv

    sign, names = text_header(path, suffix)
    check_columns(columns, names)
    known = {name: pyarrow.type_for_alias(kind) for name, kind in types.items() if kind in ALIASES}
    with path.open("rb") as raw:
        counted = CountedFile(raw, path.stat().st_size, report)
        is_compressed = path.suffix.lower() == ".gz"
        text = WatchedText(gzip.GzipFile(fileobj=counted) if is_compressed else counted)
        num_rows = 0
        for batch in csv.open_csv(text, **reading_options(sign, names, columns, known)):
            check_texts(batch.schema)
            num_rows += batch.num_rows
            yield batch
        text.check(path.name, num_rows)


ALIASES = ("null", "int64", "double", "string", "bool")


def _of_store(folder: Path, columns: Sequence[str] | None, report: Steps) -> Iterator[Any]:
    import pyarrow

    from amagold.tables._read_stored import check_one, texts

    manifest = read_manifest(folder)
    names = [field.name for field in manifest.fields]
    check_columns(columns, names)
    words = open_rows(folder, manifest)
    starts = np.cumsum([0, *(field.width for field in manifest.fields)])
    chosen = list(dict.fromkeys(names if columns is None else columns))
    for name in chosen:
        check_one(name, manifest.fields[names.index(name)].shape)
    for begin in range(0, manifest.num_rows, ROWS_AT_ONCE):
        rows = np.array(words[begin : begin + ROWS_AT_ONCE])
        found: dict[str, Any] = {}
        for name in chosen:
            place = names.index(name)
            field = manifest.fields[place]
            values = np.ascontiguousarray(rows[:, starts[place]]).view(field.kind)
            found[name] = values if field.levels is None else texts(values, field.levels)
        yield pyarrow.record_batch(found)
        report(min(begin + ROWS_AT_ONCE, manifest.num_rows), manifest.num_rows)
