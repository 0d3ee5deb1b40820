"""Predictors of which most are zero: numbers, and for every factor the one level of a row.

A factor of L levels is a column of codes, not L columns of zeros and ones; its part of
z = x . theta is one number that is looked up.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.arrays import blocks
from amagold.core.scratch import empty_beside
from amagold.target._linear_bounds import SplitRow

# of a level's coefficient: that of a column with as many ones as zeros, however rare the level is
LEVEL_SPREAD = 0.5


class CodedTable(NamedTuple):
    """A table in memory, before it is checked."""

    numbers: np.ndarray  # (rows, columns)
    codes: np.ndarray  # (rows, factors); -1 is the level that the others are compared with
    multipliers: np.ndarray  # (rows, factors that have one): what a level's coefficient is times
    names: tuple[str, ...]  # of all coefficients: those of the numbers, then factor by factor
    sizes: tuple[int, ...]  # levels of each factor, without the one they are compared with
    # of each factor the column of its multiplier, None where that is one
    multiplied_by: tuple[int | None, ...]

    def __len__(self) -> int:
        return len(self.numbers)

    def take(self, rows: np.ndarray | slice) -> "CodedTable":
        """Some of the rows."""
        # not _replace, which asks a tuple for its length
        return CodedTable(
            self.numbers[rows],
            self.codes[rows],
            self.multipliers[rows],
            self.names,
            self.sizes,
            self.multiplied_by,
        )

    def widths(self, weights: np.ndarray | None) -> np.ndarray:
        """The root mean square of each multiplier."""
        if not self.multipliers.shape[1]:
            return np.ones(0)
        squares = np.average(self.multipliers.astype(np.float64) ** 2, axis=0, weights=weights)
        found = np.sqrt(squares).astype(np.float32).astype(np.float64)
        return np.where(found > 0, found, 1.0)

    def spreads(self, weights: np.ndarray | None) -> np.ndarray:
        """Of every level's coefficient, factor by factor."""
        widths = self.widths(weights)
        of_factors = [1.0 if at is None else widths[at] for at in self.multiplied_by]
        return LEVEL_SPREAD * np.repeat(of_factors, self.sizes)


@trees.record(static=("sizes", "multiplied_by"))
class CodedRows:
    """The same as examples: rows of arrays, one for all or one for each example."""

    numbers: jax.Array
    codes: jax.Array  # of the narrowest kind that has room; all that reads them widens them
    multipliers: jax.Array
    unit: jax.Array  # what a level counts as in the coordinates that are sampled
    sizes: tuple[int, ...]
    multiplied_by: tuple[int | None, ...]

    @property
    def width(self) -> int:
        """How many coefficients there are."""
        return self.numbers.shape[-1] + sum(self.sizes)

    def dot(self, position: jax.Array) -> jax.Array:
        """z = x . theta of one row."""
        start = self.numbers.shape[-1]
        z = jnp.dot(self.numbers, position[:start])
        for factor, size in enumerate(self.sizes):
            code, place = self.codes[factor].astype(jnp.int32), self.multiplied_by[factor]
            found = position[start + jnp.maximum(code, 0)] * jnp.where(code < 0, 0.0, self.unit)
            z += found if place is None else found * self.multipliers[place]
            start += size
        return z

    def split(self) -> SplitRow:
        """One row as its numbers, levels and values."""
        values = [
            self.unit if place is None else self.unit * self.multipliers[place]
            for place in self.multiplied_by
        ]
        levels = self.codes.astype(jnp.int32) + 1
        return SplitRow(self.numbers, levels, jnp.stack(values) if values else jnp.zeros(0))

    def gram(self, weights: jax.Array) -> jax.Array:
        """sum_i w_i x_i x_i^T over rows with a leading axis, block by block: two factors meet in
        a table of their pairs of levels.
        """
        columns = [self.numbers, *map(self._levels, range(len(self.sizes)))]

        def block(first: Any, second: Any) -> jax.Array:
            if isinstance(first, FactorColumn) and isinstance(second, FactorColumn):
                if first is second:
                    return jnp.diag(_by_level(first, weights * first.values**2))
                pairs = FactorColumn(
                    first.codes * second.size + second.codes, weights, first.size * second.size
                )
                both = _by_level(pairs, weights * first.values * second.values)
                return both.reshape(first.size, second.size)
            if isinstance(first, FactorColumn):
                return _by_level(first, (weights * first.values)[:, None] * second)
            if isinstance(second, FactorColumn):
                return block(second, first).T
            return (weights[:, None] * first).T @ second

        return jnp.block([[block(first, second) for second in columns] for first in columns])

    def _levels(self, factor: int) -> "FactorColumn":
        """One factor of all rows: where the level is, and its value."""
        code, place = self.codes[:, factor].astype(jnp.int32), self.multiplied_by[factor]
        values = jnp.where(code < 0, 0.0, self.unit)
        if place is not None:
            values = values * self.multipliers[:, place]
        return FactorColumn(jnp.maximum(code, 0), values, self.sizes[factor])


class FactorColumn(NamedTuple):
    """The column of levels of one factor."""

    codes: jax.Array
    values: jax.Array  # zero for the level that the others are compared with
    size: int


def _by_level(levels: FactorColumn, values: jax.Array) -> jax.Array:
    return jax.ops.segment_sum(values, levels.codes, levels.size)


def _kind_of(codes: np.ndarray) -> Any:
    return codes.dtype if codes.dtype in (np.int8, np.int16) else np.int32


def coded_rows(
    table: CodedTable, numbers: jax.Array, weights: np.ndarray | None, *, standardised: bool
) -> CodedRows:
    """The rows of a table whose numbers are ready."""
    unit = 1.0 / LEVEL_SPREAD if standardised else 1.0
    multipliers = empty_beside(table.multipliers, table.multipliers.shape, np.float32)
    widths = table.widths(weights) if standardised else np.ones(multipliers.shape[1])
    for rows in blocks(multipliers):
        multipliers[rows] = table.multipliers[rows] / widths
    return CodedRows(
        numbers,
        # what is in a file stays there
        jax.device_put(np.ascontiguousarray(table.codes, _kind_of(table.codes))),
        jax.device_put(multipliers),
        jnp.full(len(table), unit, jnp.float32),
        table.sizes,
        table.multiplied_by,
    )
