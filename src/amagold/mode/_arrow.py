"""The curvature of a posterior with one factor of very many levels: an arrow.

Given the other coefficients ("slopes", delta from the reference), the levels ("groups", omega) do
not know of each other: the Hessian is a diagonal P over the groups, a border b, and a small matrix
A over the slopes. No matrix of groups x groups is ever made. With c = b / P and eta = omega + c
delta,

    E = r . delta + delta A delta / 2 + sum_g [(s_g + b_g . delta) omega_g + P_g omega_g^2 / 2]
      = (r - sum_g c_g s_g) . delta + delta S delta / 2 + sum_g [s_g eta_g + P_g eta_g^2 / 2],

S = A - sum_g b_g b_g^T / P_g: slopes and groups are apart. Sums are in float64 on the host, a chunk
of rows at a time.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.compiling import ONCE, jit
from amagold.core.shapes import Position, Rows
from amagold.data import InMemory
from amagold.target import Posterior
from amagold.target._linear_bounds import LinearBounds, SparsePredictor

CHUNK = 2**17  # rows
MOST_STEPS = 30  # of Newton's search
SMALL = 1e-4  # of a posterior standard deviation, by which the last step moves
LONGEST = 3.0  # that a coefficient moves in one step: far from the mode the parabola is wrong


class ArrowLayout(NamedTuple):
    """Which of the flat position are slopes, and which groups."""

    factor: int
    num_numbers: int
    num_levels: tuple[int, ...]  # of every factor, level 0 among them

    @property
    def num_groups(self) -> int:
        """Level 0, which has no coefficient, among them."""
        return self.num_levels[self.factor]

    @property
    def starts(self) -> tuple[int, ...]:
        """Of every factor, where its coefficients begin in the position."""
        before = [self.num_numbers]
        for size in self.num_levels:
            before.append(before[-1] + size - 1)
        return tuple(before[:-1])

    @property
    def groups(self) -> slice:
        start = self.starts[self.factor]
        return slice(start, start + self.num_groups - 1)

    @property
    def slopes(self) -> np.ndarray:
        """Places of the slopes in the flat position."""
        size = self.num_numbers + sum(self.num_levels) - len(self.num_levels)
        return np.delete(np.arange(size), self.groups)


class RowDerivatives(NamedTuple):
    """Of some rows, at a position: predictors, and derivatives of the energy in z."""

    numbers: Any
    levels: Any
    values: Any
    first: Any
    second: Any
    third: Any
    scales: Any  # scale_i of the bounds


class Arrow(NamedTuple):
    """The energy about a position to second order, the prior's part included."""

    position: np.ndarray  # flat
    layout: ArrowLayout
    slope_gradient: np.ndarray  # r
    slope_matrix: np.ndarray  # A
    group_gradient: np.ndarray  # s, level 0 first
    precisions: np.ndarray  # P
    border: np.ndarray  # b, (groups, slopes)

    @property
    def shifts(self) -> np.ndarray:
        """c; level 0 stays where it is."""
        return self.border / self.precisions[:, None]

    @property
    def own_matrix(self) -> np.ndarray:
        """S."""
        found = self.slope_matrix - self.border.T @ self.shifts
        return (found + found.T) / 2.0

    @property
    def own_gradient(self) -> np.ndarray:
        return self.slope_gradient - self.shifts.T @ self.group_gradient


def layout_of(target: Posterior, bounds: LinearBounds) -> ArrowLayout | None:
    """With the largest factor for the groups; None where there is none, or its value differs from
    row to row.
    """
    predictor, example = bounds.predictor, target.example
    if not isinstance(predictor, SparsePredictor):
        return None
    levels, is_plain = predictor.num_levels(example), predictor.is_plain(example)
    if not levels:
        return None
    factor = int(np.argmax(levels))
    size = trees.size(target.init)
    if not is_plain[factor] or not isinstance(target.init, (jax.Array, np.ndarray)):
        return None
    return ArrowLayout(factor, size - sum(levels) + len(levels), levels)


def row_derivatives(
    target: Posterior, bounds: LinearBounds, position: np.ndarray
) -> Iterator[RowDerivatives]:
    """Of all rows, a chunk at a time."""
    data = target.examples
    assert isinstance(data, InMemory)
    length = min(CHUNK, data.num_examples)
    at = jnp.asarray(position, jnp.float32)
    for start in range(0, data.num_examples, length):
        begin = min(start, data.num_examples - length)  # the last is as long as the others
        rows = jax.tree.map(lambda leaf, begin=begin: leaf[begin : begin + length], data.arrays)
        found = _derivatives(bounds, at, rows)
        new = slice(start - begin, None)
        yield RowDerivatives(*(np.asarray(part)[new] for part in found))


@jit(ONCE, "bounds")
def _derivatives(bounds: LinearBounds, position: Position, rows: Rows) -> RowDerivatives:
    predictor = bounds.predictor
    assert isinstance(predictor, SparsePredictor)

    def one(row: trees.PyTree) -> RowDerivatives:
        split, z = predictor.split(row), predictor(position, row)
        energy = lambda at: -bounds.outcome(at, row)  # noqa: E731
        first = jax.grad(energy)
        second = jax.grad(first)
        scale = jnp.float32(1.0) if bounds.scale is None else bounds.scale(z, row)
        return RowDerivatives(
            split.numbers,
            split.levels,
            split.values,
            first(z),
            second(z),
            jax.grad(second)(z),
            scale,
        )

    return jax.vmap(one)(rows)


def arrow_at(
    target: Posterior, bounds: LinearBounds, layout: ArrowLayout, position: np.ndarray
) -> Arrow:
    """A pass over the data."""
    slopes, factor = layout.slopes, layout.factor
    width, groups = len(slopes), layout.num_groups
    gradient, matrix = np.zeros(width), np.zeros((width, width))
    of_groups, precisions = np.zeros(groups), np.zeros(groups)
    border = np.zeros((groups, width))
    for rows in row_derivatives(target, bounds, position):
        sums = _Sums(rows, layout)
        gradient += sums.of_columns(rows.first)
        matrix += sums.gram(rows.second)
        group, value = rows.levels[:, factor], rows.values[:, factor].astype(np.float64)
        of_groups += np.bincount(group, rows.first * value, groups)
        precisions += np.bincount(group, rows.second * value**2, groups)
        border += sums.by_group(rows.second * value)
    prior_gradient, prior_matrix, prior_groups = _prior(target, layout, position)
    of_groups[1:] += prior_gradient[layout.groups]
    precisions[1:] += prior_groups
    border[0], of_groups[0], precisions[0] = 0.0, 0.0, 1.0  # it has no coefficient
    return Arrow(
        position,
        layout,
        gradient + prior_gradient[slopes],
        matrix + prior_matrix,
        of_groups,
        precisions,
        border,
    )


def arrow_mode(target: Posterior, bounds: LinearBounds, layout: ArrowLayout) -> Arrow | None:
    """The arrow at the mode of a log-concave posterior, by Newton's search; None where it does not
    get there.
    """
    position = np.asarray(target.init, np.float64)
    for _ in range(MOST_STEPS):
        arrow = arrow_at(target, bounds, layout, position)
        try:
            factor = np.linalg.cholesky(arrow.own_matrix)
        except np.linalg.LinAlgError:
            return None
        slope = -_solved(factor, arrow.own_gradient)
        group = -arrow.group_gradient / arrow.precisions - arrow.shifts @ slope
        step = np.zeros(len(position))
        step[layout.slopes], step[layout.groups] = slope, group[1:]
        # in posterior standard deviations
        moves = [np.abs(factor.T @ slope), np.abs(group * np.sqrt(arrow.precisions))]
        if max(float(move.max(initial=0.0)) for move in moves) < SMALL:
            return arrow
        longest = np.abs(step).max()
        moved = position + step * min(1.0, LONGEST / longest)
        # as the device has it, so that all sums are of one place
        position = moved.astype(np.float32).astype(np.float64)
    return None


def is_gaussian(target: Posterior, layout: ArrowLayout) -> bool:
    """Whether the prior is Gaussian, and that of the groups apart from all others."""
    rng = np.random.default_rng(0)
    size = trees.size(target.init)
    slope = jax.jit(jax.grad(lambda at: -target.log_prior(at)))
    places = [jnp.asarray(rng.normal(size=size), jnp.float32) for _ in range(2)]
    along = jnp.asarray(rng.normal(size=size), jnp.float32)
    curved = [np.asarray(jax.jvp(slope, (at,), (along,))[1]) for at in places]
    ones = np.zeros(size, np.float32)
    ones[layout.groups] = np.asarray(along)[layout.groups]
    of_groups = np.asarray(jax.jvp(slope, (places[0],), (jnp.asarray(ones),))[1])
    scale = 1e-4 * np.abs(curved[0]).max()
    is_quadratic = np.allclose(curved[0], curved[1], atol=scale)
    is_apart = np.abs(of_groups[layout.slopes]).max(initial=0.0) <= scale
    return bool(is_quadratic and is_apart and np.isfinite(curved[0]).all())


def _prior(
    target: Posterior, layout: ArrowLayout, position: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Gradient of -log prior, its Hessian over the slopes, and its diagonal over the groups."""
    at = jnp.asarray(position, jnp.float32)
    slopes = jnp.asarray(layout.slopes)

    def energy_of_slopes(values: jax.Array) -> jax.Array:
        return -target.log_prior(at.at[slopes].set(values))

    gradient = jax.grad(lambda there: -target.log_prior(there))
    ones = jnp.zeros_like(at).at[layout.groups].set(1.0)
    curved = jax.jvp(gradient, (at,), (ones,))[1]
    parts = (gradient(at), jax.hessian(energy_of_slopes)(at[slopes]), curved[layout.groups])
    first, matrix, diagonal = (np.asarray(part, np.float64) for part in parts)
    return first, matrix, diagonal


def _solved(factor: np.ndarray, right: np.ndarray) -> np.ndarray:
    from scipy.linalg import cho_solve

    return cho_solve((factor, True), right)


class _Sums:
    """Of the columns of some rows: numbers, and the levels of all factors but the groups'."""

    def __init__(self, rows: RowDerivatives, layout: ArrowLayout) -> None:
        self.layout = layout
        self.numbers = rows.numbers.astype(np.float64)
        others = [place for place in range(len(layout.num_levels)) if place != layout.factor]
        self.codes = [rows.levels[:, place] for place in others]
        self.values = [rows.values[:, place].astype(np.float64) for place in others]
        self.sizes = [layout.num_levels[place] for place in others]
        self.group = rows.levels[:, layout.factor]

    def of_columns(self, weights: np.ndarray) -> np.ndarray:
        """sum_i w_i x_i."""
        parts: list[Any] = [self.numbers.T @ weights.astype(np.float64)]
        for codes, values, size in self._factors():
            parts.append(np.bincount(codes, weights * values, size)[1:])
        return np.concatenate(parts)

    def by_group(self, weights: np.ndarray) -> np.ndarray:
        """sum_{i in g} w_i x_i for every group."""
        groups = self.layout.num_groups
        parts = [
            np.bincount(self.group, weights * column, groups)[:, None] for column in self.numbers.T
        ]
        for codes, values, size in self._factors():
            parts.append(_pairs(self.group, groups, codes, size, weights * values)[:, 1:])
        return np.concatenate(parts, axis=1) if parts else np.zeros((groups, 0))

    def gram(self, weights: np.ndarray) -> np.ndarray:
        """sum_i w_i x_i x_i^T."""
        weights = weights.astype(np.float64)
        width = self.numbers.shape[1]
        starts = np.cumsum([width, *(size - 1 for size in self.sizes)])
        found = np.zeros((starts[-1], starts[-1]))
        found[:width, :width] = (self.numbers * weights[:, None]).T @ self.numbers
        for place, (codes, values, size) in enumerate(self._factors()):
            here = slice(starts[place], starts[place] + size - 1)
            for column in range(width):
                across = np.bincount(codes, weights * values * self.numbers[:, column], size)[1:]
                found[here, column] = found[column, here] = across
            found[here, here] = np.diag(np.bincount(codes, weights * values**2, size)[1:])
            for other in range(place):
                there = slice(starts[other], starts[other] + self.sizes[other] - 1)
                both = weights * values * self.values[other]
                pairs = _pairs(codes, size, self.codes[other], self.sizes[other], both)[1:, 1:]
                found[here, there], found[there, here] = pairs, pairs.T
        return found

    def _factors(self) -> Iterator[tuple[np.ndarray, np.ndarray, int]]:
        return zip(self.codes, self.values, self.sizes, strict=True)


def _pairs(
    first: np.ndarray, num_first: int, second: np.ndarray, num_second: int, weights: np.ndarray
) -> np.ndarray:
    """Sums by pairs of levels."""
    joined = first.astype(np.int64) * num_second + second
    sums = np.bincount(joined, weights, num_first * num_second)
    return sums.reshape(num_first, num_second)
