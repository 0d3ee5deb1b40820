"""Where the rows of every level are, so that a test can draw rows by how far their levels moved.

Cells are what rows are drawn from: first one of all rows, then one for every level of every
factor, last one for the numbers, whose rows come from a table of their own. Within a cell a row is
as likely as its weight, s_i, that its remainder's bound is times.
"""

import operator
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.acceptance._group_rows import sorted_by_level
from amagold.core import trees
from amagold.core.array_types import Float32, Int32, UInt32
from amagold.core.compiling import ONCE, jit
from amagold.core.shapes import PerRow, Position, Rows, Scalar, Whole
from amagold.data import InMemory
from amagold.target import Posterior
from amagold.target._linear_bounds import LinearBounds, SparsePredictor

CHUNK = 2**17  # rows that are sorted into cells at a time
MOST_UNITS = 2**31  # that the weights of all rows are counted in, so that their sums are exact


class CellRows(NamedTuple):
    """The levels of some rows, and what each row weighs in each of its cells."""

    levels: Int32[Array, "rows factors"]
    weights: Float32[Array, "rows cells"]  # of the cell of all rows, and of each level's
    values: Float32[Array, "rows factors"]


@trees.record(static=("num_levels", "is_plain", "num_rows"))
class LevelRows:
    """`level_rows` makes it."""

    order: Int32[Array, "factors examples"]  # rows sorted by level, for each factor
    # weights added up in that order, in units; None where all rows of a factor weigh the same
    upto: UInt32[Array, "sums examples"] | None
    units: Float32[Array, " blocks"]  # of the weights
    first: UInt32[Array, " cells"]  # of a cell: its first row in the order, or unit
    count: UInt32[Array, " cells"]  # its rows, or units
    totals: Float32[Array, " cells"]  # the sum of its weights; zero for the numbers
    shares: Float32[Array, " cells"]  # of all rows
    values: Float32[Array, " factors"]  # of plain factors
    widest: Float32[Array, " cells"]  # the largest |value| of its rows
    num_levels: tuple[int, ...]
    is_plain: tuple[bool, ...]
    num_rows: int

    @property
    def num_cells(self) -> int:
        return self.totals.shape[0]

    @property
    def starts(self) -> tuple[int, ...]:
        """The first cell of every factor."""
        return tuple(1 + int(sum(self.num_levels[:factor])) for factor in range(len(self.order)))

    @property
    def blocks(self) -> np.ndarray:
        """Of every cell: 0, the factor's number from 1, or the last for the numbers."""
        sizes = [1, *self.num_levels, 1]
        return np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)

    def draw(
        self,
        cells: Int32[Array, " rows"],
        words: UInt32[Array, " rows"],
    ) -> tuple[Int32[Array, " rows"], PerRow]:
        """A row of each of the cells, and its weight there as it was counted; the numbers' cell has
        none.
        """
        blocks = jnp.asarray(self.blocks)[cells]
        drawn = self.first[cells] + scaled(words, self.count[cells])
        if self.upto is None:
            places = drawn.astype(jnp.int32)
            weights = self.units[blocks]
        else:
            row = jnp.minimum(blocks, self.upto.shape[0] - 1)
            places = _find(self.upto, row, drawn)
            before = jnp.where(places > 0, self.upto[row, jnp.maximum(places - 1, 0)], 0)
            weights = (self.upto[row, places] - before).astype(jnp.float32) * self.units[blocks]
        factor = jnp.clip(blocks - 1, 0, max(0, len(self.order) - 1))
        if not len(self.order):
            return places, weights
        return jnp.where(blocks == 0, places, self.order[factor, places]), weights


def scaled(words: UInt32[Array, " rows"], count: UInt32[Array, " rows"]) -> UInt32[Array, " rows"]:
    """floor(words count / 2^32): a whole number below the count."""
    high, low = words >> 16, words & 0xFFFF
    count_high, count_low = count >> 16, count & 0xFFFF
    middle = high * count_low + ((low * count_low) >> 16)
    other = low * count_high + (middle & 0xFFFF)
    return high * count_high + (middle >> 16) + (other >> 16)


def _find(
    upto: UInt32[Array, "sums examples"], block: Int32[Array, " rows"], drawn: Array
) -> Int32[Array, " rows"]:
    """The first place whose sum is above what was drawn."""
    num_rows = upto.shape[1]

    def halve(_: Whole, ends: tuple[Array, Array]) -> tuple[Array, Array]:
        low, high = ends
        middle = (low + high) // 2
        is_below = upto[block, middle] <= drawn
        return jnp.where(is_below, middle + 1, low), jnp.where(is_below, high, middle)

    begin = jnp.zeros_like(block), jnp.full_like(block, num_rows - 1)
    return jax.lax.fori_loop(0, num_rows.bit_length(), halve, begin)[0]


def cell_rows(bounds: LinearBounds, position: Position, rows: Rows) -> CellRows:
    """The levels and weights of rows: s_i = scale_i |value|^3."""
    predictor = bounds.predictor
    assert isinstance(predictor, SparsePredictor)

    def one(row: trees.PyTree) -> tuple[Array, Array, Array]:
        split = predictor.split(row)
        scale = scale_of(bounds, position, row)
        ones = jnp.ones((1,), jnp.float32)
        weights = scale * jnp.concatenate([ones, jnp.abs(split.values) ** 3])
        return split.levels, weights.astype(jnp.float32), split.values

    return CellRows(*jax.vmap(one)(rows))


def scale_of(bounds: LinearBounds, position: Position, row: trees.PyTree) -> Scalar:
    """scale_i of an example."""
    if bounds.scale is None:
        return jnp.float32(1.0)
    return bounds.scale(bounds.predictor(position, row), row)


@jit(ONCE, "bounds")
def _cell_rows(bounds: LinearBounds, position: Position, rows: Rows) -> CellRows:
    return cell_rows(bounds, position, rows)


def level_rows(target: Posterior, bounds: LinearBounds, position: Position) -> LevelRows:
    """Sort all rows by their levels: a walk over the data, which are in memory."""
    predictor, data = bounds.predictor, target.examples
    assert isinstance(predictor, SparsePredictor)
    assert isinstance(data, InMemory)
    num_rows, example = data.num_examples, data.example
    num_levels, is_plain = predictor.num_levels(example), predictor.is_plain(example)
    num_factors = len(num_levels)
    is_uniform = bounds.scale is None and all(is_plain)
    levels = np.empty((num_factors, num_rows), np.int32)
    weights = None if is_uniform else np.empty((1 + num_factors, num_rows), np.float32)
    values = np.zeros(num_factors, np.float32)
    widest = [np.zeros(size, np.float32) for size in num_levels]
    length = min(CHUNK, num_rows)
    for start in range(0, num_rows, length):
        start = min(start, num_rows - length)  # the last chunk is as long as the others
        part = slice(start, start + length)
        rows = jax.tree.map(operator.itemgetter(part), data.arrays)
        found = _cell_rows(bounds, position, rows)
        levels[:, part] = np.asarray(found.levels).T
        of_part = np.asarray(found.values)
        values = of_part[0]
        if weights is not None:
            weights[:, part] = np.asarray(found.weights).T
        for factor in range(num_factors):
            np.maximum.at(widest[factor], levels[factor, part], np.abs(of_part[:, factor]))
    counts = [np.array([num_rows])]
    counts += [
        np.bincount(levels[factor], minlength=num_levels[factor]) for factor in range(num_factors)
    ]
    order = levels  # in its place, factor by factor: beside many rows every array counts
    for factor in range(num_factors):
        order[factor], _ = sorted_by_level(levels[factor], num_levels[factor])
    rows_of = np.concatenate(counts)
    before = np.concatenate([np.cumsum(count) - count for count in counts])
    if weights is None:
        units = np.concatenate([[1.0], np.abs(values) ** 3]).astype(np.float32)
        upto, first, count = None, before, rows_of
    else:
        units, upto, first, count = _counted(weights, order, before, rows_of, num_levels)
    of_cells = np.repeat(units, [1, *num_levels])
    last = np.zeros(1)

    def cells(numbers: np.ndarray, dtype: type) -> Array:
        """With one more for the numbers."""
        return jnp.asarray(np.concatenate([numbers, last]).astype(dtype))

    return LevelRows(
        # as they are, where `jnp.asarray` would copy
        order=jax.device_put(order),
        upto=None if upto is None else jax.device_put(upto),
        units=jnp.asarray(np.concatenate([units, last]), jnp.float32),
        first=cells(first, np.uint32),
        count=cells(count, np.uint32),
        totals=cells(count * of_cells, np.float32),
        shares=cells(rows_of / num_rows, np.float32),
        values=jnp.asarray(values, jnp.float32),
        widest=cells(np.concatenate([np.ones(1), *widest]), np.float32),
        num_levels=num_levels,
        is_plain=is_plain,
        num_rows=num_rows,
    )


def _counted(
    weights: np.ndarray,
    order: np.ndarray,
    before: np.ndarray,
    rows_of: np.ndarray,
    num_levels: tuple[int, ...],
) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The weights of every block in whole units, rounded up, and added up in its order: units,
    sums, and of every cell where it begins and how many units it has.
    """
    num_rows = weights.shape[1]
    totals = weights.sum(axis=1, dtype=np.float64)
    units = np.maximum(totals / (MOST_UNITS - num_rows), np.finfo(np.float32).tiny)
    units = units.astype(np.float32)
    upto = np.empty(weights.shape, np.uint32)
    first, count, cell = [], [], 0
    for block, size in enumerate((1, *num_levels)):
        sorted_weights = weights[block] if block == 0 else weights[block][order[block - 1]]
        whole = np.ceil(sorted_weights.astype(np.float64) / units[block]).astype(np.uint64)
        sums = np.cumsum(whole)
        upto[block] = sums
        padded = np.concatenate([[0], sums])
        begin = before[cell : cell + size]
        end = begin + rows_of[cell : cell + size]
        first.append(padded[begin])
        count.append(padded[end] - padded[begin])
        cell += size
    return units, upto, np.concatenate(first), np.concatenate(count)
