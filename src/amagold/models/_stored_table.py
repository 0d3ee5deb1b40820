"""A table on disk as regressions see it: one column is the outcome, the others are predictors.

Nothing is copied: rows are standardised when they are read, to the bit as a table in memory is when
it is stored.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.data import Data, Viewed
from amagold.data._columns_on_disk import ColumnOnDisk, columns_on_disk
from amagold.models._row_terms import NOTHING, RowTerms

SOME = 2**16  # outcomes, whose median is near that of all


class StoredColumns(NamedTuple):
    """The predictors of a table on disk."""

    data: Data
    columns: tuple[ColumnOnDisk, ...]

    def __len__(self) -> int:
        return self.data.num_examples

    @property
    def labels(self) -> tuple[str, ...]:
        """A name for each number."""
        return tuple(label for column in self.columns for label in _labels(column))

    def of_all(self, statistic: str) -> np.ndarray:
        """A field of the columns' moments, over all of them."""
        found = [getattr(column.moments, statistic) for column in self.columns]
        return np.concatenate(found) if found else np.zeros(0)


class StoredOutcome(NamedTuple):
    """The outcomes of a table on disk; `convert` makes of the column's value what a model takes."""

    data: Data
    column: ColumnOnDisk
    convert: Callable[[jax.Array], jax.Array] | None = None

    @property
    def mean(self) -> float:
        return float(self.column.moments.mean[0])

    @property
    def lowest(self) -> float:
        return float(self.column.moments.lowest[0])

    @property
    def highest(self) -> float:
        return float(self.column.moments.highest[0])

    @property
    def deviation(self) -> float:
        return float(np.sqrt(self.column.moments.variance[0]))

    @property
    def is_whole(self) -> bool:
        return bool(self.column.moments.is_whole[0])

    def some(self) -> np.ndarray:
        """Enough of the outcomes for their median."""
        some = self.data.some(SOME)
        rows = some.rows(jnp.arange(some.num_examples))
        return np.asarray(rows[self.column.name], np.float64)


class StoredPredictors(NamedTuple):
    """Predictors that are made of a row when it is read."""

    data: Data
    names: tuple[str, ...]
    has_intercept: bool
    centers: jax.Array | None  # None: as they are
    scales: jax.Array | None

    @property
    def shape(self) -> tuple[int, int]:
        example = self.data.example
        width = sum(int(np.prod(example[name].shape, dtype=np.int64)) for name in self.names)
        return self.data.num_examples, width + self.has_intercept


def signs(values: jax.Array) -> jax.Array:
    """-1 or 1."""
    return jnp.where(values > 0, 1.0, -1.0).astype(jnp.float32)


def as_labels(values: jax.Array) -> jax.Array:
    return values.astype(jnp.int32)


def as_counts(values: jax.Array) -> jax.Array:
    return values.astype(jnp.float32)


@trees.record()
class InUnits:
    """Less the center, divided by the scale; in float64, as a table in memory is stored."""

    center: jax.Array
    scale: jax.Array

    def __call__(self, values: jax.Array) -> jax.Array:
        with jax.enable_x64(True):
            away = values.astype(jnp.float64) - self.center.astype(jnp.float64)
            return (away / self.scale.astype(jnp.float64)).astype(jnp.float32)


@trees.record(static=("names", "outcome", "example", "has_intercept"), functions=("convert",))
class RegressionView:
    """Rows of a table as a regression's examples."""

    centers: jax.Array | None
    scales: jax.Array | None
    convert: Callable[[jax.Array], jax.Array]
    names: tuple[str, ...]
    outcome: str
    example: type
    has_intercept: bool

    def __call__(self, rows: Any) -> Any:
        leading = rows[self.outcome].shape
        parts = [rows[name].reshape(*leading, -1) for name in self.names]
        if self.centers is not None and self.scales is not None and parts:
            # in float64, as a table in memory is standardised before it is stored
            with jax.enable_x64(True):
                wide = jnp.concatenate([part.astype(jnp.float64) for part in parts], axis=-1)
                away = wide - self.centers.astype(jnp.float64)
                parts = [(away / self.scales.astype(jnp.float64)).astype(jnp.float32)]
        ones = [jnp.ones((*leading, 1), jnp.float32)] if self.has_intercept else []
        as_stored = [part.astype(jnp.float32) for part in parts]
        predictors = jnp.concatenate([*ones, *as_stored], axis=-1)
        return self.example(predictors, self.convert(rows[self.outcome]))


def named_columns(data: Data) -> dict[str, ColumnOnDisk]:
    """The columns of a table on disk, or a sentence where they have no names."""
    columns = columns_on_disk(data)
    if columns is None:
        raise ValueError(
            "X must have named columns of which all rows are known, as amagold.data.open gives "
            "them of a table or a folder of arrays, and not a part of them; give such data, or "
            "build an amagold.Posterior"
        )
    return columns


def stored_table(data: Data, outcome: str | None) -> tuple[StoredColumns, StoredOutcome]:
    """The predictors and the outcome of a table on disk."""
    columns = named_columns(data)
    names = ", ".join(map(repr, list(columns)[:20]))
    if not isinstance(outcome, str) or outcome not in columns:
        given = "none was given" if outcome is None else f"{outcome!r} is none"
        raise ValueError(f"outcome must be one of the columns, but {given}: there are {names}")
    if columns[outcome].shape:
        raise ValueError(
            f"outcome must be one number in each row, but {outcome!r} has shape "
            f"{columns[outcome].shape}"
        )
    if columns[outcome].is_coded:
        raise ValueError(
            f"outcome must be a column of numbers, but {outcome!r} holds texts; write them as "
            "numbers first"
        )
    for name, column in columns.items():
        if column.is_coded:
            raise ValueError(
                f"X must hold numbers, but column {name!r} holds texts; open the data with the "
                "other columns alone (columns=...), or code it as numbers first"
            )
    others = tuple(column for name, column in columns.items() if name != outcome)
    return StoredColumns(data, others), StoredOutcome(data, columns[outcome])


def stored_predictors(
    table: StoredColumns,
    has_intercept: bool,
    centers: np.ndarray,
    scales: np.ndarray,
    *,
    standardised: bool,
) -> StoredPredictors:
    return StoredPredictors(
        table.data,
        tuple(column.name for column in table.columns),
        has_intercept,
        jnp.asarray(centers, jnp.float32) if standardised else None,
        jnp.asarray(scales, jnp.float32) if standardised else None,
    )


def examples_of(example: type, predictors: Any, outcomes: Any, rows: RowTerms = NOTHING) -> Any:
    """A regression's data: arrays in memory, or a table on disk seen row by row."""
    if not isinstance(predictors, StoredPredictors):
        return example(predictors, jnp.asarray(outcomes), **rows.stored())
    assert isinstance(outcomes, StoredOutcome)
    assert outcomes.convert is not None
    view = RegressionView(
        predictors.centers,
        predictors.scales,
        outcomes.convert,
        predictors.names,
        outcomes.column.name,
        example,
        predictors.has_intercept,
    )
    return Viewed(predictors.data, view)


def _labels(column: ColumnOnDisk) -> list[str]:
    if not column.shape:
        return [f"column {column.name!r}"]
    places = np.ndindex(*column.shape)
    return [f"column {column.name!r}[{', '.join(map(str, place))}]" for place in places]
