"""What a sweep over groups must know beforehand: the arrow at the mode, where the rows of groups
are, how long their rows are, and the mean to the next order.
"""

import dataclasses
import math
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from scipy.linalg import solve_triangular

from amagold.acceptance._bounds_agreement import check_agreement
from amagold.acceptance._group_rows import group_rows
from amagold.acceptance._group_sweep import GroupSweep, SweepMemory
from amagold.core import trees
from amagold.core.array_types import Float
from amagold.core.compiling import ONCE, jit
from amagold.core.shapes import RandomKey, Scalar
from amagold.mode._arrow import Arrow, ArrowLayout, RowDerivatives, row_derivatives
from amagold.mode._reference import Reference
from amagold.target import Posterior
from amagold.target._linear_bounds import LinearBounds

NOISE = 0.25  # variance that arrivals may bring to log a
NUM_PILOTS = 48  # sweeps from the Gaussian that acceptance and shares are measured from
SMALLEST_BLOCK, LARGEST_BLOCK = 32, 1024
# of the slopes, tried from the largest; the first that is accepted often enough is taken
ANGLES = (math.pi / 2.0, 1.0, 0.6, 0.35, 0.2, 0.1)
OFTEN = 0.5
SKEWED = 0.3  # skewness of a group's conditional, beyond which fresh draws alone would get stuck
ROOM = 1.0 + 1e-5  # of lengths, that float32 may round


class Typical(NamedTuple):
    """What a sweep from a draw of the Gaussian does on average."""

    acceptance: Float[Array, ""]  # of the slopes
    group_acceptance: Float[Array, ""]
    group_share: Float[Array, ""]  # mean of q^2 over arrivals
    slope_share: Float[Array, ""]
    group_rows: Float[Array, ""]
    slope_rows: Float[Array, ""]

    def told(self) -> dict[str, Array]:
        """What plans say of it."""
        names = ("acceptance", "group_acceptance", "group_rows", "slope_rows")
        return {name: getattr(self, name) for name in names}


def group_sweep(
    target: Posterior, bounds: LinearBounds, arrow: Arrow
) -> tuple[GroupSweep, Typical]:
    """The sweep about an arrow: a pass over the data, and a few pilots."""
    return _tuned(target, untuned_sweep(target, bounds, arrow))


def untuned_sweep(target: Posterior, bounds: LinearBounds, arrow: Arrow) -> GroupSweep:
    """The same before its angle and its noise are chosen."""
    layout = arrow.layout
    factor = np.linalg.cholesky(arrow.own_matrix)
    inverse = solve_triangular(factor, np.eye(len(factor)), lower=True)
    shifts = arrow.shifts @ inverse.T
    position = trees.unflatten_like(jnp.asarray(arrow.position, jnp.float32), target.init)
    check_agreement(target, bounds, position)
    known = _walk(target, bounds, arrow, inverse, shifts)
    gradient = inverse @ arrow.own_gradient
    widths = 1.0 / np.sqrt(arrow.precisions)
    widths[0] = 0.0
    return GroupSweep(
        bounds=bounds,
        block_size=SMALLEST_BLOCK,
        reference=Reference(position, jnp.zeros(trees.size(position), jnp.float32), None),
        rows=group_rows(known.groups, layout.num_groups),
        places=jnp.asarray(layout.slopes, jnp.int32),
        first_group=jnp.int32(layout.groups.start),
        unwhitening=jnp.asarray(inverse.T, jnp.float32),
        shifts=jnp.asarray(shifts, jnp.float32),
        slope_gradient=jnp.asarray(gradient, jnp.float32),
        # the Gaussian's mean, and what the mean slope of the remainders moves it by
        slope_mean=jnp.asarray(-gradient - known.tilt, jnp.float32),
        angle=jnp.float32(ANGLES[0]),
        group_means=jnp.asarray(-arrow.group_gradient / arrow.precisions, jnp.float32),
        group_widths=jnp.asarray(widths, jnp.float32),
        is_skewed=jnp.asarray(np.abs(known.thirds) * known.value**3 * widths**3 > SKEWED),
        value=jnp.float32(known.value),
        lengths=jnp.asarray(known.lengths * ROOM, jnp.float32),
        scales=jnp.asarray(known.scales * ROOM, jnp.float32),
        group_spread=jnp.float32(0.0),
        slope_spread=jnp.float32(0.0),
    )


class WalkedRows(NamedTuple):
    """What a walk over all rows told."""

    groups: np.ndarray  # of every row
    lengths: np.ndarray  # h_g
    scales: np.ndarray
    tilt: np.ndarray  # sum_i f'''_i Var(a_i) y_i / 2
    thirds: np.ndarray  # sum of f''' over a group
    value: float


def _walk(
    target: Posterior, bounds: LinearBounds, arrow: Arrow, inverse: np.ndarray, shifts: np.ndarray
) -> WalkedRows:
    layout = arrow.layout
    groups = np.empty(target.num_examples, np.int32)
    lengths, scales = np.zeros(layout.num_groups), np.zeros(layout.num_groups)
    tilt, thirds = np.zeros(len(inverse)), np.zeros(layout.num_groups)
    value, start = 0.0, 0
    variances = 1.0 / arrow.precisions
    variances[0] = 0.0
    for rows in row_derivatives(target, bounds, arrow.position):
        group = rows.levels[:, layout.factor]
        value = float(rows.values[0, layout.factor])
        own = _whitened(rows, layout, inverse) - value * shifts[group]
        squares = np.einsum("ij,ij->i", own, own)
        np.maximum.at(lengths, group, np.sqrt(squares))
        np.maximum.at(scales, group, rows.scales)
        tilt += 0.5 * (rows.third * (squares + value**2 * variances[group])) @ own
        thirds += np.bincount(group, rows.third, layout.num_groups)
        groups[start : start + len(group)] = group
        start += len(group)
    return WalkedRows(groups, lengths, scales, tilt, thirds, value)


def _whitened(rows: RowDerivatives, layout: ArrowLayout, inverse: np.ndarray) -> np.ndarray:
    """L^-1 x of every row, x without the groups."""
    found = rows.numbers.astype(np.float64) @ inverse[:, : layout.num_numbers].T
    start = layout.num_numbers
    for place, size in enumerate(layout.num_levels):
        if place == layout.factor:
            continue
        columns = np.concatenate([np.zeros((1, len(inverse))), inverse[:, start:].T[: size - 1]])
        found += rows.values[:, place, None] * columns[rows.levels[:, place]]
        start += size - 1
    return found


def _tuned(target: Posterior, sweep: GroupSweep) -> tuple[GroupSweep, Typical]:
    """With as much noise as may be, and the largest angle that is accepted often enough."""
    found = _typical(target, sweep)
    sweep = dataclasses.replace(
        sweep,
        group_spread=found.group_share / NOISE,
        slope_spread=found.slope_share / NOISE,
    )
    for angle in ANGLES:
        sweep = dataclasses.replace(sweep, angle=jnp.float32(angle))
        found = _typical(target, sweep)
        if float(found.acceptance) >= OFTEN:
            break
    rows = max(1.0, float(found.group_rows), float(found.slope_rows))
    block = 2 ** round(math.log2(rows))
    block = min(LARGEST_BLOCK, max(SMALLEST_BLOCK, block))
    return dataclasses.replace(sweep, block_size=block), found


@jit(ONCE)
def _typical(target: Posterior, sweep: GroupSweep) -> Typical:
    """Averages over sweeps that start at draws of the Gaussian."""

    def one(key: RandomKey) -> Typical:
        slope_key, group_key, draw_key = jax.random.split(key, 3)
        start = SweepMemory(
            sweep.slope_mean + jax.random.normal(slope_key, sweep.slope_mean.shape),
            sweep.group_means
            + sweep.group_widths * jax.random.normal(group_key, sweep.group_means.shape),
        )
        draws = sweep.draw(draw_key)
        moved, of_groups, is_accepted = sweep.move_groups(target, draws, start)
        _, of_slopes, log_ratio = sweep.move_slopes(target, draws, moved)

        def share(squares: Scalar, number: Array) -> Scalar:
            return squares / jnp.maximum(number, 1)

        return Typical(
            jnp.where(jnp.isfinite(log_ratio), jnp.exp(jnp.minimum(log_ratio, 0.0)), 0.0),
            jnp.mean(is_accepted.astype(jnp.float32)),
            share(of_groups.squares, of_groups.num_arrivals),
            share(of_slopes.squares, of_slopes.num_arrivals),
            of_groups.num_examples.astype(jnp.float32),
            of_slopes.num_examples.astype(jnp.float32),
        )

    found = jax.lax.map(one, jax.random.split(jax.random.key(0), NUM_PILOTS))
    return jax.tree.map(lambda leaf: jnp.mean(leaf), found)
