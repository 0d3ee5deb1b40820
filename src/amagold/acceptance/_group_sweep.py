"""Exact draws for one factor of very many levels: every level has a test of its own.

One test for a whole position of ten thousand levels would have to accept all of their remainders at
once. But given the slopes the levels are independent, so that each may be proposed and tested by
itself; and the slopes are proposed with the levels moving along, so that what they share does not
hold them. In the coordinates of `mode/_arrow.py`, d = L^T delta with S = L L^T and eta, the
posterior to second order is independent normals, and a sweep is

    groups    eta*_g = -s_g / P_g + P_g^(-1/2) xi_g for all g; each accepted with min(1, exp(l_g))
    slopes    d* = m + cos(h) (d - m) + sin(h) xi, eta fixed; accepted with
              min(1, exp((rho + m) . (d - d*) + sum_g l_g))

where l_g is what the remainders of the group's rows add to log a (`_group_visit.py`), m is the mean
to the next order and rho the gradient at the reference, both frozen. Skewed groups, whose tails are
longer than the Gaussian's, walk at random half of the time, and all of them now and then. With h_g
= max |L^-1 x~_i| over the rows of a group, x~_i = x_i - v c_g, a row's predictor differs from the
reference by a_i = y_i . d + v eta_g, |y_i| <= h_g, and with k = K_3 scale_g exp(growth max|a|)

    |D_i| <= (k / 6) |a*^3 - a^3| <= (k / 6) A (3/4 C^2 + 1/4 A^2),
    A >= |a* - a|, C >= |a* + a|.

Both moves leave the posterior as it is, whatever is frozen.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from amagold.acceptance._acceptance_test import Acceptance, Decision
from amagold.acceptance._group_rows import GroupRows
from amagold.acceptance._group_visit import GroupQuestion, PerGroup, Visit, visit
from amagold.core import trees
from amagold.core.array_types import Bool, Float32, Int32
from amagold.core.shapes import Position, RandomKey, Scalar
from amagold.mode._reference import Reference
from amagold.target import Target, with_data
from amagold.target._linear_bounds import LinearBounds

Slopes = Float32[Array, " slopes"]

SHORTEST, USUAL, LONG = 0.5, 2.0, 6.0  # strides of walks, in standard deviations
# how often groups walk: fresh draws would leave a chain that is far out where it is
SKEWED_WALKS, ALL_WALKS = 0.5, 0.25
SHORT, SHORT_TURNS = 0.25, 0.25  # of the slopes' angle, and how often: out of tails too


class SweepMemory(NamedTuple):
    """A position in the coordinates of the sweep."""

    slopes: Slopes  # d
    groups: PerGroup  # eta, level 0 first


class SweepDraws(NamedTuple):
    """The randomness of one sweep."""

    slopes: Slopes
    groups: PerGroup
    tests: PerGroup  # logarithms of uniform numbers, one for each group
    log_uniform: Scalar
    stride: Scalar  # of walks, between the shortest and the longest
    skewed_walk: Array  # whether skewed groups walk
    all_walk: Array  # whether all groups do
    is_short: Array  # whether the slopes turn by less
    group_key: RandomKey  # of the visits of rows
    slope_key: RandomKey


@trees.record(static=("bounds", "block_size"))
class GroupSweep(Acceptance):
    """Exact, at a cost that does not grow with the data. It moves the chain itself: what it is
    given as a proposal is where the chain is.
    """

    name = "sweep"
    label = "exact"
    uses_work = False
    is_count_fixed = False

    bounds: LinearBounds
    block_size: int
    reference: Reference
    rows: GroupRows
    places: Int32[Array, " slopes"]  # of the slopes in the flat position
    first_group: Array  # where the groups' coefficients begin there
    unwhitening: Float32[Array, "slopes slopes"]  # L^-T: delta = L^-T d
    shifts: Float32[Array, "groups slopes"]  # c L^-T
    slope_gradient: Slopes  # rho
    slope_mean: Slopes  # m
    angle: Scalar  # h
    group_means: PerGroup
    group_widths: PerGroup  # P_g^(-1/2); zero for level 0
    is_skewed: Bool[Array, " groups"]
    value: Scalar  # v, what a level counts as
    lengths: PerGroup  # h_g
    scales: PerGroup  # the largest scale_i
    group_spread: Scalar  # kappa_g = max(1, spread times the group's rate)
    slope_spread: Scalar

    def draw(self, key: RandomKey) -> SweepDraws:
        slopes, groups, tests, uniform, stride, coins, visits = jax.random.split(key, 7)
        chances = jnp.array([SKEWED_WALKS, ALL_WALKS, SHORT_TURNS])
        skewed_walk, all_walk, is_short = jax.random.uniform(coins, (3,)) < chances
        return SweepDraws(
            jax.random.normal(slopes, self.slope_mean.shape),
            jax.random.normal(groups, self.group_means.shape),
            -jax.random.exponential(tests, self.group_means.shape),
            -jax.random.exponential(uniform),
            jax.random.uniform(stride),
            skewed_walk,
            all_walk,
            is_short,
            *jax.random.split(visits),
        )

    def remember(self, target: Target, position: Position) -> SweepMemory:
        away = self.reference.away(position)
        delta = away[self.places]
        slopes = jnp.linalg.solve(self.unwhitening, delta)
        size = self.group_means.shape[0] - 1
        omega = jax.lax.dynamic_slice_in_dim(away, self.first_group, size)
        omega = jnp.concatenate([jnp.zeros((1,), omega.dtype), omega])
        return SweepMemory(slopes, omega + self.shifts @ slopes)

    def position(self, memory: SweepMemory) -> Position:
        """Back to the target's coordinates."""
        delta = self.unwhitening @ memory.slopes
        omega = memory.groups - self.shifts @ memory.slopes
        away = jnp.zeros_like(trees.flatten(self.reference.position))
        away = away.at[self.places].set(delta)
        away = jax.lax.dynamic_update_slice_in_dim(away, omega[1:], self.first_group, 0)
        flat = trees.flatten(self.reference.position) + away
        return trees.unflatten_like(flat, self.reference.position)

    def decide(
        self,
        target: Target,
        draws: SweepDraws,
        memory: SweepMemory,
        proposed: Position,
        work: Scalar,
    ) -> Decision:
        """A sweep from where the chain is; it always ends somewhere."""
        moved, of_groups, _ = self.move_groups(target, draws, memory)
        moved, of_slopes, log_ratio = self.move_slopes(target, draws, moved)
        broken = jnp.maximum(of_groups.broken_bound, of_slopes.broken_bound)
        return Decision(
            jnp.bool_(True),
            log_ratio,
            ~jnp.isfinite(log_ratio),
            moved,
            of_groups.num_examples + of_slopes.num_examples,
            broken,
            self.position(moved),
        )

    def move_groups(
        self, target: Target, draws: SweepDraws, memory: SweepMemory
    ) -> tuple[SweepMemory, Visit, Array]:
        """Every group by itself, given the slopes."""
        walks = draws.all_walk | (draws.skewed_walk & self.is_skewed)
        step = self.group_widths * draws.groups
        afresh = self.group_means + step
        # evenly in its logarithm: tails may be several times as wide as the Gaussian
        longest = jnp.where(self.is_skewed, LONG, USUAL)
        walked = memory.groups + SHORTEST * (longest / SHORTEST) ** draws.stride * step
        there = memory._replace(groups=jnp.where(walks, walked, afresh))
        # E(eta) - E(eta*) = P ((eta - mean)^2 - (eta* - mean)^2) / 2; a fresh draw has it already
        middle = 0.5 * (memory.groups + there.groups) - self.group_means
        fall = (memory.groups - there.groups) * middle
        width = jnp.where(self.group_widths > 0, self.group_widths, 1.0)
        known = jnp.where(walks, fall / width**2, 0.0)
        apart = self.value * jnp.abs(there.groups - memory.groups)
        together = 2.0 * self.lengths * jnp.linalg.norm(memory.slopes)
        together += self.value * jnp.abs(there.groups + memory.groups)
        bounds = self.row_bounds(apart, together)
        # of the group alone, so that groups stay independent
        kappa = jnp.maximum(1.0, self.group_spread * self.rows.counts * bounds)
        found = self._visit(target, memory, there, bounds, kappa, draws.group_key)
        is_accepted = draws.tests < known + found.log_ratios
        moved = jnp.where(is_accepted, there.groups, memory.groups)
        return memory._replace(groups=moved), found, is_accepted

    def move_slopes(
        self, target: Target, draws: SweepDraws, memory: SweepMemory
    ) -> tuple[SweepMemory, Visit, Scalar]:
        """The slopes, with the groups moving along; and log a."""
        angle = self.angle * jnp.where(draws.is_short, SHORT, 1.0)
        turned = jnp.cos(angle) * (memory.slopes - self.slope_mean)
        slopes = self.slope_mean + turned + jnp.sin(angle) * draws.slopes
        there = memory._replace(slopes=slopes)
        apart = self.lengths * jnp.linalg.norm(slopes - memory.slopes)
        together = self.lengths * jnp.linalg.norm(slopes + memory.slopes)
        together += 2.0 * self.value * jnp.abs(memory.groups)
        bounds = self.row_bounds(apart, together)
        rate = jnp.sum(self.rows.counts * bounds)
        kappa = jnp.broadcast_to(jnp.maximum(1.0, self.slope_spread * rate), bounds.shape)
        found = self._visit(target, memory, there, bounds, kappa, draws.slope_key)
        known = jnp.dot(self.slope_gradient + self.slope_mean, memory.slopes - slopes)
        log_ratio = known + jnp.sum(found.log_ratios)
        is_accepted = jnp.isfinite(log_ratio) & (draws.log_uniform < log_ratio)
        moved = jnp.where(is_accepted, slopes, memory.slopes)
        return memory._replace(slopes=moved), found, log_ratio

    def row_bounds(self, apart: PerGroup, together: PerGroup) -> PerGroup:
        """B_g from A_g and C_g."""
        third = self.bounds.derivatives[2] * self.scales
        if self.bounds.growth:
            third = third * jnp.exp(self.bounds.growth * 0.5 * (apart + together))
        return third / 6.0 * apart * (0.75 * together**2 + 0.25 * apart**2)

    def num_examples(self, target: Target) -> int:
        return self.block_size

    def known_reference(self) -> Reference:
        return self.reference

    def _visit(
        self,
        target: Target,
        here: SweepMemory,
        there: SweepMemory,
        bounds: PerGroup,
        kappa: PerGroup,
        key: RandomKey,
    ) -> Visit:
        posterior = with_data(target, "a sweep", "use acceptance.full()")
        question = GroupQuestion(self.position(here), self.position(there), bounds, kappa)
        return visit(
            posterior, self.bounds, self.reference, self.rows, question, key, self.block_size
        )
