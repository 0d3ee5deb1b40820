"""Rows of rare levels, which are looked at every time.

A level of a few rows is known so badly that its coefficient is far from Gaussian, and a bound on
what the expansion about the mode leaves out is wide. But its rows are few: their remainders

    R_i(theta) = U_i(theta) - U_i - U_i' . a - a . U_i'' a / 2,    a = z_i(theta) - z_i,

with U_i and its derivatives at the reference, are computed as they are. What is left is nearer to
its expansion.
"""

import operator
from collections.abc import Iterator

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.core import trees
from amagold.core.array_types import Bool, Float, Int
from amagold.core.compiling import ONCE, jit
from amagold.core.shapes import (
    PerRow,
    Position,
    Predictor,
    PredictorPerRow,
    Rows,
    Scalar,
    Vector,
)
from amagold.data import InMemory
from amagold.target import Posterior
from amagold.target._linear_bounds import LinearBounds, SparsePredictor

PER_PARAMETER = 8  # rows: together about what a product with the mass costs
CHUNK = 2**17  # rows whose levels are there at a time
LARGEST_SHARE = 0.125  # of all rows: more would be no few


@trees.record(static=("bounds", "num_levels"))
class RareRows:
    """`rare_rows` makes it."""

    bounds: LinearBounds
    rows: Rows
    is_rare: Bool[Array, " levels"]  # which levels are, factor by factor
    position: Position  # the reference
    z: PredictorPerRow  # there
    slopes: PredictorPerRow  # of U_i with respect to z
    curvatures: Float[Array, " rows *square"]
    num_levels: tuple[int, ...]

    @property
    def num_rows(self) -> int:
        return self.z.shape[0]

    def energy(self, position: Position) -> Scalar:
        """sum_i R_i(theta)."""
        return self._remainders(self._moves(position)).sum()

    def gradient(self, position: Position) -> Vector:
        """Of the same, over the flattened position."""
        moves, pull = jax.vjp(self._moves, position)
        weights = jax.grad(lambda at: self._remainders(at).sum())(moves)
        return trees.flatten(pull(weights)[0])

    def holds(self, levels: Int[Array, "*rows factors"]) -> Bool[Array, "*rows"]:
        """Whether rows of these levels are among them."""
        before = np.cumsum((0, *self.num_levels[:-1])).astype(np.int32)
        return jnp.any(self.is_rare[levels + before], axis=-1)

    def _moves(self, position: Position) -> PredictorPerRow:
        # z is linear but for a constant: its derivative along the change, where nothing cancels
        away = jax.tree.map(jnp.subtract, position, self.position)

        def one(row: trees.PyTree) -> Predictor:
            return jax.jvp(lambda at: self.bounds.predictor(at, row), (self.position,), (away,))[1]

        return jax.vmap(one)(self.rows)

    def _remainders(self, moves: PredictorPerRow) -> PerRow:
        here, there = (
            jax.vmap(self.bounds.outcome)(z, self.rows) for z in (self.z, self.z + moves)
        )

        def known(move: Predictor, slope: Predictor, curvature: Array) -> Scalar:
            return jnp.vdot(move, slope + 0.5 * jnp.tensordot(curvature, move, axes=move.ndim))

        return here - there - jax.vmap(known)(moves, self.slopes, self.curvatures)


def rare_rows(target: Posterior, bounds: LinearBounds, position: Position) -> RareRows | None:
    """The rows of the rarest levels, as many as cost little; None where there are none."""
    predictor, data = bounds.predictor, target.examples
    assert isinstance(predictor, SparsePredictor)
    assert isinstance(data, InMemory)
    most = min(PER_PARAMETER * trees.size(position), int(LARGEST_SHARE * target.num_examples))
    num_levels = predictor.num_levels(data.example)
    counts = [np.zeros(size, np.int64) for size in num_levels]
    for _, levels in _parts(bounds, data):
        for factor, size in enumerate(num_levels):
            counts[factor] += np.bincount(levels[:, factor], minlength=size)
    is_rare = _rarest(counts, most)
    if not any(flags.any() for flags in is_rare):
        return None
    chosen = np.zeros(data.num_examples, bool)
    for part, levels in _parts(bounds, data):
        for factor, flags in enumerate(is_rare):
            chosen[part] |= flags[levels[:, factor]]
    rows = data.rows(jnp.asarray(np.flatnonzero(chosen)))
    z, slopes, curvatures = _at(bounds, position, rows)
    flags = jnp.asarray(np.concatenate(is_rare))
    return RareRows(bounds, rows, flags, position, z, slopes, curvatures, num_levels)


def _rarest(counts: list[np.ndarray], most: int) -> list[np.ndarray]:
    """Of every factor which levels are rare: the smallest first, as long as their rows together are
    not more than `most`.
    """
    together = np.concatenate(counts)
    order = np.argsort(together, kind="stable")
    fits = np.cumsum(together[order]) <= most
    flags = np.zeros(len(together), bool)
    flags[order[fits]] = True
    flags &= together > 0
    return np.split(flags, np.cumsum([len(count) for count in counts])[:-1])


def _parts(bounds: LinearBounds, data: InMemory) -> Iterator[tuple[slice, np.ndarray]]:
    """The levels of all rows, some rows at a time."""
    length = min(CHUNK, data.num_examples)
    for start in range(0, data.num_examples, length):
        first = min(start, data.num_examples - length)  # the last part is as long as the others
        rows = jax.tree.map(operator.itemgetter(slice(first, first + length)), data.arrays)
        levels = np.asarray(_levels(bounds, rows))[start - first :]
        yield slice(start, start + len(levels)), levels


@jit(ONCE, "bounds")
def _levels(bounds: LinearBounds, rows: Rows) -> Int[Array, "rows factors"]:
    predictor = bounds.predictor
    assert isinstance(predictor, SparsePredictor)
    return jax.vmap(lambda row: predictor.split(row).levels)(rows)


@jit(ONCE, "bounds")
def _at(
    bounds: LinearBounds, position: Position, rows: Rows
) -> tuple[PredictorPerRow, PredictorPerRow, Float[Array, " rows *square"]]:
    """z_i of all rows, and the derivatives of U_i there."""
    z = jax.vmap(bounds.predictor, in_axes=(None, 0))(position, rows)
    slopes = jax.vmap(jax.grad(bounds.outcome))(z, rows)
    return z, -slopes, -jax.vmap(jax.hessian(bounds.outcome))(z, rows)
