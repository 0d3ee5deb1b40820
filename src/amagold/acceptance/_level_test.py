"""The exact test on a few examples for predictors of factors: rows are drawn by how far the levels
that they belong to have moved.

A bound by |theta - ref| in the norm of the Hessian knows only that all coefficients together have
moved by sqrt(d), and so expects any row to have: d^3 / sqrt(N) examples for a test. But z_i sees
one level of each factor, and where that level is, is known. With |z_i - z_ref| <= sum_b u_b over
blocks b (what all rows have in common, the numbers, the factors; `_level_moves.py`), weights p_b
that add up to one and f(t) = K_3 t^3 exp(growth t) / 6, which is convex and rises,

    |R_i(theta)| <= scale_i f(sum_b u_b) <= scale_i sum_b p_b f(u_b / p_b),

a sum of functions of one level each; for a vector z the first step is Taylor's along the straight
line from z_ref, whose length is |z_i - z_ref|. So the sums over all rows of a level are known from
their number alone, and rows come from cell g, a level, at the rate n_g p_b (f(u_g / p_b) + f(u*_g /
p_b)): a few hundred at 3 million rows and 500 levels. p_b in proportion to (sum_g n_g u_g^3)^(1/3)
makes the total the smallest there is (Minkowski's inequality). The rest is as in `_tuna.py`: phi_i
= kappa b_i + min(0, D_i), where b_i is the row's own sum.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.acceptance._acceptance_test import Acceptance, Decision
from amagold.acceptance._arrival_table import ArrivalTable
from amagold.acceptance._arrivals import (
    ROUNDING,
    Arrivals,
    Count,
    Draws,
    conclude,
    count_arrivals,
    draw_test,
)
from amagold.acceptance._level_moves import Centring, level_moves
from amagold.acceptance._level_rows import LevelRows, cell_rows, scaled
from amagold.acceptance._remainders import differences_and_rounding
from amagold.core import trees
from amagold.core.array_types import Bool, Float32, Int32, UInt32
from amagold.core.randomness import unit
from amagold.core.shapes import Flag, PerRow, Position, RandomKey, Rows, Scalar
from amagold.mode._rare_rows import RareRows
from amagold.mode._reference import Reference
from amagold.target import Posterior, Target, with_data
from amagold.target._linear_bounds import LinearBounds

ORDER = 2
NUM_WORDS = 4  # cell, row within it, the numbers' table, and whether a row rounded up arrives
PARTS = 2**30  # that the rate is cut into, so that cells are drawn exactly as likely as they count
LEAST_SHARE = 1e-4  # of a block: a smaller one costs little and divides by little


class LevelMemory(NamedTuple):
    """What is remembered of a position."""

    position: Position
    moves: Float32[Array, " cells"]  # u_g
    energy: Scalar  # -log prior + T(theta), without the constant


class Rates(NamedTuple):
    """At which the rows of cells arrive, for two positions."""

    ends: UInt32[Array, " cells"]  # the rate of the cells so far, in parts
    each: Float32[Array, " cells"]  # of a row of weight one
    total: Scalar


class DrawnRows(NamedTuple):
    """Rows that were drawn, and the bounds on their remainders' differences."""

    examples: Int32[Array, " rows"]
    rows: Rows
    arrives: Bool[Array, " rows"]  # but for those that were counted as more than they weigh
    bounds: PerRow


@trees.record(static=("block_size", "bounds"))
class LevelTest(Acceptance):
    """Exact, at a cost that does not grow with the data. `acceptance.tuna` makes it."""

    name = "tuna"
    label = "exact"
    uses_work = True
    is_count_fixed = False

    block_size: int
    bounds: LinearBounds
    reference: Reference
    centring: Centring
    levels: LevelRows
    table: ArrivalTable  # of the numbers' bounds
    largest: Scalar  # of the h_i
    spread: Scalar  # kappa = max(1, spread times the rate)
    noise: Scalar  # the variance that the draws of examples bring to log a
    typical: Scalar  # examples that a test near the Laplace approximation looks at
    most: Scalar  # arrivals above which all data are looked at instead
    rare: RareRows | None = None  # that every test looks at

    def draw(self, key: RandomKey) -> Draws:
        return draw_test(key)

    def remember(self, target: Target, position: Position) -> LevelMemory:
        away = self.reference.away(position)
        energy = self.reference.taylor_energy(away, ORDER) - target.log_prior(position)
        if self.rare is not None:
            energy += self.rare.energy(position)
        return LevelMemory(position, level_moves(self.centring, self.levels, away), energy)

    def decide(
        self,
        target: Target,
        draws: Draws,
        memory: LevelMemory,
        proposed: Position,
        work: Scalar,
    ) -> Decision:
        posterior = with_data(target, "acceptance.tuna", "use acceptance.full()")
        log_uniform, key = draws
        there = self.remember(posterior, proposed)
        rates = self.rates(memory, there)
        kappa = jnp.maximum(1.0, self.spread * rates.total)
        rate = kappa * rates.total
        # symmetric in the two positions, so that both ways choose the same test
        scans = ~(rate < self.most)
        rate = jnp.where(scans, 0.0, rate)

        def look(count: Count, arrivals: Arrivals) -> Count:
            return self._look(posterior, memory, there, rates, kappa, rate, count, arrivals)

        count = count_arrivals(posterior, rate, key, NUM_WORDS, self.block_size, look)
        if self.rare is not None:
            count = count._replace(num_examples=count.num_examples + self.rare.num_rows)
        return conclude(posterior, log_uniform, memory, there, work, scans, count)

    def num_examples(self, target: Target) -> int:
        return self.block_size

    def known_reference(self) -> Reference:
        return self.reference

    def rates(self, here: LevelMemory, there: LevelMemory) -> Rates:
        """Of all cells, for a pair of positions; which is which does not matter."""
        blocks = jnp.asarray(self.levels.blocks)
        num_blocks = int(self.levels.blocks[-1]) + 1
        # what all rows of a cell weigh, candidates of the numbers' table that do not arrive too
        weights = self.levels.totals.at[-1].set(self.table.total * self.table.excess)
        if self.rare is not None:
            weights = weights.at[1:-1].multiply(jnp.where(self.rare.is_rare, 0.0, 1.0))
        cubes = weights * (here.moves**3 + there.moves**3)
        sizes = jnp.cbrt(jax.ops.segment_sum(cubes, blocks, num_blocks))
        sizes = jnp.maximum(sizes, LEAST_SHARE * sizes.max())
        sizes = jnp.where(sizes.sum() > 0, sizes, 1.0)  # nothing has moved
        share = (sizes / sizes.sum())[blocks]
        width = self.levels.widest.at[-1].set(self.largest)

        def bound(moves: Float32[Array, " cells"]) -> Float32[Array, " cells"]:
            stretched = moves / share
            grown = jnp.exp(self.bounds.growth * width * stretched)
            return share * (self.bounds.derivatives[2] / 6.0) * stretched**3 * grown

        each = bound(here.moves) + bound(there.moves)
        total = jnp.sum(weights * each)
        # rounded up to whole parts, of which a cell has as many as its rows together arrive by
        in_parts = jnp.where(total > 0, weights * each / total, 0.0) * PARTS
        parts = jnp.ceil(jnp.where(jnp.isfinite(in_parts), in_parts, 0.0)).astype(jnp.uint32)
        part = total / PARTS
        each = jnp.where(weights > 0, parts.astype(jnp.float32) * part / weights, 0.0)
        ends = jnp.cumsum(parts)
        return Rates(ends, each, ends[-1].astype(jnp.float32) * part)

    def candidates(
        self, target: Posterior, rates: Rates, words: UInt32[Array, "words rows"], is_read: Array
    ) -> DrawnRows:
        """A row for each column of words; where it is not read, any."""
        drawn = scaled(words[0], jnp.broadcast_to(rates.ends[-1], words[0].shape))
        cells = jnp.searchsorted(rates.ends, drawn, side="right").astype(jnp.int32)
        cells = jnp.minimum(cells, self.levels.num_cells - 1)
        of_levels, counted = self.levels.draw(cells, words[1])
        of_numbers, _ = self.table.candidates(words[1:3])
        is_number = cells == self.levels.num_cells - 1
        examples = jnp.where(is_number, of_numbers, of_levels)
        examples = jnp.where(is_read & (examples < self.levels.num_rows), examples, -1)
        rows = target.examples.rows(jnp.maximum(examples, 0))
        own = cell_rows(self.bounds, self.reference.position, rows)
        slots = self.table.weights[jnp.maximum(examples, 0) // self.table.each]
        starts = np.array(self.levels.starts, np.int32)
        its_cells = jnp.concatenate(
            [jnp.zeros((len(examples), 1), jnp.int32), own.levels + starts], axis=1
        )
        bounds = jnp.sum(own.weights * rates.each[its_cells], axis=1) + slots * rates.each[-1]
        # a row of weight s that was counted as more arrives with the ratio
        block = jnp.minimum(jnp.asarray(self.levels.blocks)[cells], own.weights.shape[1] - 1)
        weight = jnp.take_along_axis(own.weights, block[:, None], axis=1)[:, 0]
        arrives = (examples >= 0) & (is_number | (unit(words[3]) * counted < weight))
        if self.rare is not None:
            arrives &= ~self.rare.holds(own.levels)
        return DrawnRows(examples, rows, arrives, bounds)

    def shares(
        self, target: Posterior, here: Position, there: Position, found: DrawnRows
    ) -> tuple[PerRow, Bool[Array, " rows"]]:
        """D_i / b_i, and whether a bound is broken."""
        differences, rounding = differences_and_rounding(
            self.bounds, self.reference, ORDER, here, there, found.rows
        )
        bounds = found.bounds
        shares = jnp.where(bounds > 0, differences / jnp.where(bounds > 0, bounds, 1.0), 0.0)
        is_broken = ~(jnp.abs(differences) <= (1.0 + ROUNDING) * bounds + rounding)
        return jnp.clip(shares, -1.0, 1.0), is_broken & found.arrives

    def _look(
        self,
        target: Posterior,
        here: LevelMemory,
        there: LevelMemory,
        rates: Rates,
        kappa: Scalar,
        rate: Scalar,
        count: Count,
        arrivals: Arrivals,
    ) -> Count:
        times = count.time + jnp.cumsum(arrivals.waiting_times)
        is_read: Flag | Array = times < rate
        found = self.candidates(target, rates, arrivals.words, is_read)
        shares, is_broken = self.shares(target, here.position, there.position, found)
        down, up = jnp.minimum(shares, 0.0) / kappa, jnp.minimum(-shares, 0.0) / kappa
        # kept with probability phi_i(theta, theta*) / (kappa b_i) = 1 + min(0, q_i) / kappa
        is_kept = found.arrives & (arrivals.keeps < 1.0 + down)
        ratio = jnp.where(is_kept, jnp.log1p(up) - jnp.log1p(jnp.where(is_kept, down, 0.0)), 0.0)
        return Count(
            times[-1],
            count.log_ratio + ratio.sum(),
            count.num_examples + (found.examples >= 0).sum(dtype=jnp.int32),
            jnp.maximum(count.broken_bound, jnp.where(is_broken, found.examples, -1).max()),
            count.num_blocks + 1,
        )
