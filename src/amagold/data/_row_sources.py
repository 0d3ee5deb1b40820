"""Tables in files that rows cannot be read from one by one: Parquet, Arrow and Zarr.

Each says what its rows are made of and gives them in order, some at a time, as 32-bit words.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import numpy as np

from amagold.data._fields import ALONE, Field, width_of, word_type
from amagold.data._row_store import Stamp

ROWS_AT_ONCE = 2**16
PARQUET, ARROW = (".parquet", ".pq"), (".arrow", ".feather", ".ipc")


class Levels(dict[str, dict[str, int]]):
    """The codes of every column of text, by order of appearance."""


class RowSource(Protocol):
    """Where rows come from."""

    @property
    def fields(self) -> tuple[Field, ...]: ...

    @property
    def num_rows(self) -> int: ...

    @property
    def files(self) -> tuple[Path, ...]: ...

    def words(self, start: int, levels: Levels) -> Iterator[np.ndarray]:
        """Rows from this number on, some at a time."""
        ...


def source_stamps(files: Sequence[Path]) -> tuple[Stamp, ...]:
    return tuple(Stamp.of(file, file.name) for file in files)


class ArrowSource(NamedTuple):
    """Parquet files or Arrow IPC files with the same columns, one after the other."""

    files: tuple[Path, ...]
    fields: tuple[Field, ...]
    lengths: tuple[int, ...]

    @property
    def num_rows(self) -> int:
        return sum(self.lengths)

    def words(self, start: int, levels: Levels) -> Iterator[np.ndarray]:
        names = [field.name for field in self.fields]
        for file, length in zip(self.files, self.lengths, strict=True):
            if start >= length:
                start -= length
                continue
            for batch in _batches(file, names):
                if start >= batch.num_rows:
                    start -= batch.num_rows
                    continue
                yield _words_of(batch.slice(start), self.fields, levels, file)
                start = 0


def arrow_source(files: Sequence[Path], columns: Sequence[str] | None) -> ArrowSource:
    """Raises one sentence where the files are not tables of numbers with the same columns."""
    pyarrow = _pyarrow()
    first, fields, lengths = files[0], None, []
    for file in files:
        try:
            schema, length = _schema(file)
        except (pyarrow.ArrowException, OSError) as reason:
            line = str(reason).splitlines()[0]
            raise ValueError(f"path must hold whole files, but {str(file)!r}: {line}") from None
        found = _fields_of(schema, columns, file)
        if fields is None:
            fields = found
        elif found != fields:
            raise ValueError(
                f"path must hold files with the same columns, but {str(file)!r} differs from "
                f"{str(first)!r}: {_difference(fields, found)}; name the common ones with columns="
            )
        lengths.append(length)
    assert fields is not None
    return ArrowSource(tuple(files), fields, tuple(lengths))


def _pyarrow() -> Any:
    try:
        import pyarrow as untyped
    except ImportError:
        raise ImportError(
            "Parquet and Arrow files need pyarrow; install it with: pip install 'amagold[tables]'"
        ) from None
    return untyped


def _schema(file: Path) -> tuple[Any, int]:
    if file.suffix in PARQUET:
        import pyarrow.parquet as parquet

        opened: Any = parquet.ParquetFile(file)
        return opened.schema_arrow, opened.metadata.num_rows
    import pyarrow as untyped

    arrow: Any = untyped
    with arrow.memory_map(str(file)) as mapped:
        reader = arrow.ipc.open_file(mapped)
        batches = range(reader.num_record_batches)
        return reader.schema, sum(reader.get_batch(index).num_rows for index in batches)


def _batches(file: Path, names: list[str]) -> Iterator[Any]:
    if file.suffix in PARQUET:
        import pyarrow.parquet as parquet

        opened: Any = parquet.ParquetFile(file)
        yield from opened.iter_batches(ROWS_AT_ONCE, columns=names)
        return
    import pyarrow as untyped

    arrow: Any = untyped
    with arrow.memory_map(str(file)) as mapped:
        reader = arrow.ipc.open_file(mapped)
        for index in range(reader.num_record_batches):
            batch = reader.get_batch(index).select(names)
            for start in range(0, batch.num_rows, ROWS_AT_ONCE):
                yield batch.slice(start, ROWS_AT_ONCE)


def _fields_of(schema: Any, columns: Sequence[str] | None, file: Path) -> tuple[Field, ...]:
    names = list(schema.names)
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise ValueError(f"path must hold columns of different names, but {twice[0]!r} comes twice")
    missing = [name for name in columns or () if name not in names]
    if missing:
        raise ValueError(
            f"columns must be among those of {str(file)!r}, but {missing[0]!r} is not: it has "
            f"{', '.join(map(repr, names[:20]))}"
        )
    return tuple(Field(name, _kind(schema.field(name), file), ()) for name in (columns or names))


def _kind(column: Any, file: Path) -> str:
    types = _pyarrow().types
    found = column.type
    if types.is_floating(found) or types.is_decimal(found):
        return "float32"
    if types.is_integer(found) or types.is_boolean(found) or _is_text(found):
        return "int32"
    raise ValueError(
        f"path must hold columns of numbers or text, but {column.name!r} of {str(file)!r} is of "
        f"type {found}; leave it out with columns=, or turn it into numbers first"
    )


def _is_text(found: Any) -> bool:
    types = _pyarrow().types
    if types.is_dictionary(found):
        return _is_text(found.value_type)
    return types.is_string(found) or types.is_large_string(found) or types.is_string_view(found)


def _words_of(batch: Any, fields: tuple[Field, ...], levels: Levels, file: Path) -> np.ndarray:
    words = np.empty((batch.num_rows, width_of(fields)), word_type(fields))
    for place, field in enumerate(fields):
        column = batch.column(place)
        if column.null_count:
            raise ValueError(
                f"path must hold no missing values, but column {field.name!r} of {str(file)!r} "
                f"has {column.null_count:,} among {batch.num_rows:,} rows; drop or impute them "
                "first"
            )
        words[:, place] = _numbers(column, field, levels, file).view(words.dtype)
    return words


def _numbers(column: Any, field: Field, levels: Levels, file: Path) -> np.ndarray:
    arrow = _pyarrow()
    if _is_text(column.type):
        return _codes(column, levels.setdefault(field.name, {}))
    if field.kind == "float32":
        with np.errstate(over="ignore"):
            plain = column.cast(arrow.float64()) if arrow.types.is_decimal(column.type) else column
            found = np.asarray(plain.to_numpy(zero_copy_only=False)).astype(np.float32)
        bad = np.count_nonzero(~np.isfinite(found))
        if bad:
            raise ValueError(
                f"path must hold finite numbers that float32 has room for, but column "
                f"{field.name!r} of {str(file)!r} has {bad:,} others among {len(found):,} rows; "
                "drop or rescale them first"
            )
        return found
    whole = np.asarray(column.to_numpy(zero_copy_only=False))
    found = whole.astype(np.int32)
    if not np.array_equal(found, whole):
        raise ValueError(
            f"path must hold whole numbers of 32 bits, but column {field.name!r} of "
            f"{str(file)!r} has larger ones; divide them, or store them as text if they are names"
        )
    return found


def _codes(column: Any, known: dict[str, int]) -> np.ndarray:
    """Codes of text, in order of appearance over all batches."""
    arrow = _pyarrow()
    encoded = column if arrow.types.is_dictionary(column.type) else column.dictionary_encode()
    names = encoded.dictionary.to_pylist()
    of_batch = np.asarray(encoded.indices.to_numpy(zero_copy_only=False), np.int64)
    # a dictionary may hold names that no row has, and in any order
    for index in dict.fromkeys(of_batch.tolist()):
        known.setdefault(names[index], len(known))
    table = np.asarray([known.get(name, 0) for name in names], np.int32)
    return table[of_batch]


def _difference(first: tuple[Field, ...], other: tuple[Field, ...]) -> str:
    for here, there in zip(first, other, strict=False):
        if here != there:
            return f"{there.name!r} ({there.kind}) where {here.name!r} ({here.kind}) is expected"
    return f"it has {len(other)} columns where {len(first)} are expected"


class ZarrSource(NamedTuple):
    """A Zarr array, or the arrays of a group that share their first axis."""

    files: tuple[Path, ...]
    fields: tuple[Field, ...]
    num_rows: int
    arrays: dict[str, Any]

    def words(self, start: int, levels: Levels) -> Iterator[np.ndarray]:
        for first in range(start, self.num_rows, ROWS_AT_ONCE):
            parts = []
            for field in self.fields:
                values = np.asarray(self.arrays[field.name][first : first + ROWS_AT_ONCE])
                found = values.astype(field.kind)
                is_bad = (
                    not np.isfinite(found).all()
                    if field.kind == "float32"
                    else not np.array_equal(found, values)
                )
                if is_bad:
                    raise ValueError(
                        f"path must hold finite numbers that 32 bits have room for, but array "
                        f"{field.name!r} has others from row {first:,} on; drop or rescale them"
                    )
                parts.append(found.reshape(len(found), field.width).view(word_type(self.fields)))
            yield np.concatenate(parts, axis=1)


def zarr_source(path: Path, columns: Sequence[str] | None) -> ZarrSource:
    """Raises one sentence where there is no array of numbers."""
    import zarr as untyped

    zarr: Any = untyped
    opened = zarr.open(str(path), mode="r")
    found = {ALONE: opened} if isinstance(opened, zarr.Array) else dict(opened.arrays())
    arrays = {name: found[name] for name in columns or sorted(found) if name in found}
    missing = [name for name in columns or () if name not in found]
    if missing or not arrays:
        raise ValueError(
            f"columns must be among the arrays of {str(path)!r}: {', '.join(map(repr, found))}; "
            f"got {missing}"
        )
    lengths = {name: array.shape[0] if array.ndim else 0 for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise ValueError(f"path must hold arrays of one length, but {str(path)!r} has {lengths}")
    fields = []
    for name, array in arrays.items():
        if array.dtype.kind not in "fiub":
            raise ValueError(
                f"path must hold arrays of numbers, but {name!r} of {str(path)!r} is of type "
                f"{array.dtype}; leave it out with columns="
            )
        kind = "float32" if array.dtype.kind == "f" else "int32"
        fields.append(Field(name, kind, tuple(array.shape[1:])))
    files = tuple(sorted(file for file in path.rglob("*") if file.is_file()))
    return ZarrSource(files, tuple(fields), next(iter(lengths.values())), arrays)
