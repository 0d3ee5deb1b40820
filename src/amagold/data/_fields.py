"""What a stored row is made of: named fields of 32-bit words, and what all rows say of each."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees

KINDS = ("float32", "int32")
CACHE_BYTES = 2**20  # of rows that are looked at together: what the processor's cache holds
ALONE = ""  # the name of the only field of rows that are arrays and not tables


class Field(NamedTuple):
    """Some words of every row."""

    name: str
    kind: str  # of `KINDS`
    shape: tuple[int, ...]  # of one row's value
    levels: tuple[str, ...] | None = None  # what the codes stand for, where they are codes

    @property
    def width(self) -> int:
        """In words."""
        return int(np.prod(self.shape, dtype=np.int64))


def width_of(fields: tuple[Field, ...]) -> int:
    """The words of one row."""
    return sum(field.width for field in fields)


def word_type(fields: tuple[Field, ...]) -> np.dtype:
    """What rows are stored as: floats where all are, so that anybody can read the file."""
    kinds = {field.kind for field in fields}
    return np.dtype("<f4" if kinds == {"float32"} else "<i4")


@dataclass(frozen=True)
class RowView:
    """Rows of words as a table's rows: a dictionary of the fields, or the only one."""

    fields: tuple[Field, ...]
    columns: tuple[str, ...] | None = None  # the fields to show, in this order; None shows all
    coded: tuple[str, ...] = ()  # the fields that hold the numbers of levels

    def __call__(self, words: jax.Array) -> trees.PyTree:
        found: dict[str, jax.Array] = {}
        start = 0
        for field in self.fields:
            part = words[..., start : start + field.width]
            start += field.width
            kind = jnp.dtype(field.kind)
            if part.dtype != kind:
                part = jax.lax.bitcast_convert_type(part, kind)
            found[field.name] = part.reshape(*words.shape[:-1], *field.shape)
        if ALONE in found:
            return found[ALONE]
        return found if self.columns is None else {name: found[name] for name in self.columns}


class ColumnMoments(NamedTuple):
    """What all rows say of each word, as a number: one pass, block by block (Chan et al.)."""

    num_rows: int
    mean: np.ndarray
    squares: np.ndarray  # summed squared deviations from the mean
    lowest: np.ndarray
    highest: np.ndarray
    is_whole: np.ndarray  # one where all are whole numbers, else zero

    @classmethod
    def nothing(cls, width: int) -> "ColumnMoments":
        zero = np.zeros(width)
        ends = np.full(width, np.inf)
        return cls(0, zero, zero, ends, -ends, np.ones(width))

    @property
    def variance(self) -> np.ndarray:
        return self.squares / max(1, self.num_rows)

    def of_words(self, start: int, width: int) -> "ColumnMoments":
        """Of some of the words alone."""
        some = (getattr(self, name)[start : start + width] for name in self._fields[1:])
        return ColumnMoments(self.num_rows, *some)

    def with_block(self, values: np.ndarray) -> "ColumnMoments":
        """With the numbers of further rows, a column for each word."""
        found, step = self, max(1, CACHE_BYTES // max(1, values[:1].nbytes))
        for start in range(0, len(values), step):
            found = found._with_part(values[start : start + step])
        return found

    def _with_part(self, values: np.ndarray) -> "ColumnMoments":
        added = len(values)
        # a column after the other, because sums along many short rows are several times as slow
        columns = np.ascontiguousarray(values.T)
        lowest, highest = columns.min(axis=1), columns.max(axis=1)
        # a column with a fraction somewhere is not looked at again
        is_whole = self.is_whole.copy()
        for place in np.flatnonzero(is_whole):
            is_whole[place] = np.array_equal(columns[place], np.floor(columns[place]))
        # from the first row, so that a column far from zero keeps its differences
        first = columns[:, :1].astype(np.float64)
        away = columns - first
        shifted = away.mean(axis=1)
        away -= shifted[:, None]
        mean = first[:, 0] + shifted
        squares = np.einsum("ij,ij->i", away, away)
        return self.with_others(ColumnMoments(added, mean, squares, lowest, highest, is_whole))

    def with_others(self, others: "ColumnMoments") -> "ColumnMoments":
        """With those of further rows."""
        num_rows, shift = self.num_rows + others.num_rows, others.mean - self.mean
        # S = S_a + S_b + n_a n_b / (n_a + n_b) (mean_b - mean_a)^2
        share = self.num_rows * others.num_rows / num_rows
        return ColumnMoments(
            num_rows,
            self.mean + shift * others.num_rows / num_rows,
            self.squares + others.squares + share * shift**2,
            np.minimum(self.lowest, others.lowest),
            np.maximum(self.highest, others.highest),
            self.is_whole * others.is_whole,
        )

    def as_bytes(self) -> bytes:
        """Of all but the number of rows."""
        return np.asarray(self[1:], np.float64).tobytes()

    @classmethod
    def from_bytes(cls, num_rows: int, known: bytes) -> "ColumnMoments | None":
        """None where nothing is known."""
        if not known:
            return None
        numbers = np.frombuffer(known, np.float64)
        return cls(num_rows, *numbers.reshape(len(cls._fields) - 1, -1))

    def as_json(self) -> dict[str, Any]:
        return {
            "num_rows": self.num_rows,
            **{name: getattr(self, name).tolist() for name in self._fields[1:]},
        }

    @classmethod
    def from_json(cls, found: Mapping[str, Any]) -> "ColumnMoments":
        parts = [np.asarray(found[name], np.float64) for name in cls._fields[1:]]
        return cls(int(found["num_rows"]), *parts)


def as_numbers_of(fields: tuple[Field, ...], words: np.ndarray) -> np.ndarray:
    """Rows of words as float64 numbers, codes and whole numbers too."""
    columns, start = [], 0
    for field in fields:
        part = words[:, start : start + field.width]
        start += field.width
        columns.append(part.view(field.kind).astype(np.float64))
    return np.concatenate(columns, axis=1)
