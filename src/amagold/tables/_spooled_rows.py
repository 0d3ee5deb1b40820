"""Rows that are larger than memory as an Arrow table whose columns are files without a name.

To everybody else it is a table like any other; texts are whole numbers with a list of levels.
"""

from collections.abc import Iterable
from typing import Any

import numpy as np

from amagold.core.scratch import ScratchFile

BLOCK = 2**20  # codes that are put into order together


def spooled(batches: Iterable[Any]) -> Any:
    """The rows of record batches with one schema."""
    import pyarrow

    columns: dict[str, SpooledColumn] = {}
    for batch in batches:
        for field in batch.schema:
            if field.name not in columns:
                columns[field.name] = _column_for(field.name, field.type)
            columns[field.name].append(batch.column(field.name))
    return pyarrow.table({name: column.as_array() for name, column in columns.items()})


class SpooledColumn:
    """Values of a fixed width, and which of them are missing."""

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self._values = ScratchFile(_word(kind))
        self._missing: list[np.ndarray | int] = []  # flags of a batch, or how many have none

    def append(self, values: Any) -> None:
        self._note_missing(values)
        self._values.append(self._words(values))

    def as_array(self) -> Any:
        import pyarrow

        words = self._values.as_array()
        buffers = [self._validity(), pyarrow.py_buffer(words)]
        return pyarrow.Array.from_buffers(self.kind, len(words), buffers)

    def _words(self, values: Any) -> np.ndarray:
        """What stands for a missing one does not matter."""
        import pyarrow

        if str(values.type) != str(self.kind):
            values = values.cast(self.kind)
        word = _word(self.kind)
        whole = pyarrow.from_numpy_dtype(word)
        plain = values if values.type == whole else values.view(whole)
        return np.asarray(plain.fill_null(0).to_numpy(zero_copy_only=False), word)

    def _note_missing(self, values: Any) -> None:
        if not values.null_count:
            self._missing.append(len(values))
        else:
            self._missing.append(np.asarray(values.is_null().to_numpy(zero_copy_only=False)))

    def _validity(self) -> Any:
        """A bit for each value, or nothing where none is missing."""
        import pyarrow

        if all(isinstance(part, int) for part in self._missing):
            return None
        flags = [np.ones(part, bool) if isinstance(part, int) else ~part for part in self._missing]
        return pyarrow.py_buffer(np.packbits(np.concatenate(flags), bitorder="little"))


class SpooledFlags(SpooledColumn):
    """Booleans, of which a bit each is kept in memory."""

    def __init__(self) -> None:
        self._parts: list[Any] = []

    def append(self, values: Any) -> None:
        self._parts.append(values)

    def as_array(self) -> Any:
        import pyarrow

        return pyarrow.concat_arrays(self._parts)


class SpooledLevels(SpooledColumn):
    """Texts: declared levels keep their order, others are sorted as they are everywhere else."""

    def __init__(self, is_declared: bool) -> None:
        import pyarrow

        super().__init__(pyarrow.int32())
        self._is_declared = is_declared
        self._known: dict[Any, int] = {}

    def append(self, values: Any) -> None:
        import pyarrow

        self._note_missing(values)
        if not pyarrow.types.is_dictionary(values.type):
            values = values.cast(pyarrow.large_string()).dictionary_encode()
        levels = values.dictionary.to_pylist()
        for level in levels:
            if level is not None:
                self._known.setdefault(level, len(self._known))
        codes = np.asarray([self._known.get(level, 0) for level in levels] or [0], np.int32)
        places = values.indices.fill_null(0).to_numpy(zero_copy_only=False)
        self._values.append(codes[places.astype(np.int64)])

    def as_array(self) -> Any:
        import pyarrow

        codes, levels = self._values.as_array(), np.asarray(list(self._known), object)
        if not self._is_declared and len(levels):
            order = np.argsort(levels)
            rank = np.empty(len(levels), np.int32)
            rank[order] = np.arange(len(levels), dtype=np.int32)
            for start in range(0, len(codes), BLOCK):
                part = slice(start, start + BLOCK)
                codes[part] = rank[codes[part]]
            levels = levels[order]
        buffers = [self._validity(), pyarrow.py_buffer(codes)]
        indices = pyarrow.Array.from_buffers(pyarrow.int32(), len(codes), buffers)
        return pyarrow.DictionaryArray.from_arrays(indices, pyarrow.array(levels.tolist()))


def _column_for(name: str, kind: Any) -> SpooledColumn:
    import pyarrow

    types = pyarrow.types
    if types.is_boolean(kind):
        return SpooledFlags()
    if types.is_dictionary(kind):
        return SpooledLevels(is_declared=True)
    if types.is_string(kind) or types.is_large_string(kind) or types.is_string_view(kind):
        return SpooledLevels(is_declared=False)
    if types.is_decimal(kind) or types.is_float16(kind) or types.is_null(kind):
        return SpooledColumn(pyarrow.float64())
    if types.is_integer(kind) or types.is_floating(kind) or types.is_temporal(kind):
        return SpooledColumn(kind)
    raise ValueError(
        f"table must hold numbers, texts or dates in the columns that are used, but {name!r} is of "
        f"type {kind}; make one of them of it first"
    )


def _word(kind: Any) -> Any:
    """The type of NumPy with as many bits."""
    import pyarrow

    if pyarrow.types.is_temporal(kind):
        return np.dtype(f"i{kind.bit_width // 8}")
    return np.dtype(kind.to_pandas_dtype())
