"""Firefly (Maclaurin and Adams, 2014): an exact test that looks only at the examples that shine.

| symbol | here |
|---|---|
| L_i, B_i | an example's likelihood and a lower bound on it: log B_i is a parabola in z_i |
| gap_i = log L_i - log B_i >= 0 | how far the bound is off |
| gap_i <= c_i M, C = sum c_i | the bound; c_i from the data, M = \\|theta - reference\\|^2 / 2 |
| s_i | how often example i shines in one transition |

Published: z_i ~ Bernoulli(1 - B_i / L_i) turns prod L_i into prod B_i prod over the bright (z_i =
1) of (L_i - B_i) / B_i, so that

    log a = rho + [log prior + sum log B](theta*) - [same](theta) + sum over the bright of
    log[expm1(gap_i(theta*)) / expm1(gap_i(theta))].

Here: s_i ~ Poisson(gap_i(theta)), afresh in every transition. Because L_i = B_i exp(gap_i), the
joint density is

    prior prod L_i exp(-gap_i) gap_i^s_i / s_i! = prior prod B_i gap_i^s_i / s_i!,

whose sum over all s is the posterior, and the ratio at given s is

    log a = rho + [log prior + sum log B](theta*) - [same](theta) + sum_i s_i log(gap_i(theta*) /
    gap_i(theta)).

pi(theta) p(s | theta) min(1, a) is symmetric in the two ends of a path whatever s is, so both the
reversible and the irreversible chain are exact. The bright set is the published one, because P(s_i
> 0) = 1 - exp(-gap_i) = 1 - B_i / L_i. The counts are used, rather than the set, because the s_i
are the arrivals of a Poisson process: rate C M(theta), each i with probability c_i / C, kept with
probability gap_i / (c_i M). The set would need each example once, a search among the arrivals of
all blocks. The price: given the set, the published ratio is the mean of this one over the counts,
so by Jensen's inequality it accepts at least as often; where the gaps are small no example shines
twice, and the two are the same.

The rate depends on theta alone, so whether to look at all data instead must depend on both ends
alike: on the larger of the two rates.
"""

from typing import NamedTuple

import jax.numpy as jnp

from amagold.acceptance._arrival_table import ArrivalTable
from amagold.acceptance._arrival_test import ArrivalTest, Question
from amagold.acceptance._arrivals import (
    ROUNDING,
    Arrivals,
    Count,
    look_at,
)
from amagold.acceptance._firefly_bounds import gaps_of
from amagold.core import trees
from amagold.core.shapes import Matrix, Position, Scalar
from amagold.mode._reference import Reference
from amagold.target import Posterior, Target
from amagold.target._linear_bounds import LinearBounds


class FireflyMemory(NamedTuple):
    """What is remembered of a position."""

    position: Position
    size: Scalar  # M(theta)
    energy: Scalar  # -log prior - sum log B, without the constant


@trees.record(static=("block_size", "bounds"))
class FireflyTest(ArrivalTest):
    """Exact, at a cost that does not grow with the data. `acceptance.firefly` makes it."""

    name = "firefly"
    label = "exact"

    block_size: int
    bounds: LinearBounds
    # -sum log B about the reference: its gradient is the energy's, its Hessian that of the
    # parabolas
    surrogate: Reference
    whitening: Matrix  # L^T, of the norm in which M is measured
    table: ArrivalTable  # of c_i, and C
    most: Scalar  # expected arrivals above which all data are looked at instead

    def remember(self, target: Target, position: Position) -> FireflyMemory:
        away = self.surrogate.away(position)
        size = 0.5 * jnp.sum((self.whitening @ away) ** 2)
        return FireflyMemory(
            position,
            size,
            self.surrogate.taylor_energy(away, 2) - self.with_data(target).log_prior(position),
        )

    def question(self, target: Posterior, memory: FireflyMemory, proposed: Position) -> Question:
        there = self.remember(target, proposed)
        # the larger rate of the two is the same from both ends, so both ways choose the same test
        rate = self.table.total * self.table.excess  # of candidates, at M = 1
        scans = ~(rate * jnp.maximum(memory.size, there.size) < self.most)
        rate = jnp.where(scans, 0.0, rate * memory.size)  # C M(theta), and those that do not arrive

        def look(count: Count, arrivals: Arrivals) -> Count:
            return self._look(target, memory, proposed, rate, count, arrivals)

        return Question(there, rate, scans, look)

    def _look(
        self,
        target: Posterior,
        here: FireflyMemory,
        proposed: Position,
        rate: Scalar,
        count: Count,
        arrivals: Arrivals,
    ) -> Count:
        found = look_at(target, self.table, rate, count, arrivals)
        gaps, rounding = gaps_of(
            self.bounds, self.surrogate.position, here.position, proposed, found.rows
        )
        bounds = found.weights * here.size
        # gap_i / (c_i M); where the bound is zero so is the gap
        shares = jnp.where(bounds > 0, gaps[:, 0] / jnp.where(bounds > 0, bounds, 1.0), 0.0)
        slack = ROUNDING * bounds + rounding[:, 0]
        is_broken = found.is_read & ~((gaps[:, 0] >= -slack) & (gaps[:, 0] <= bounds + slack))
        is_kept = found.counts & (arrivals.keeps < shares)
        before, after = (
            jnp.log(jnp.where(is_kept, jnp.maximum(gap, 0.0), 1.0))
            for gap in (gaps[:, 0], gaps[:, 1])
        )
        return Count(
            found.last,
            count.log_ratio + (after - before).sum(),
            count.num_examples + found.is_read.sum(dtype=jnp.int32),
            jnp.maximum(count.broken_bound, jnp.where(is_broken, found.examples, -1).max()),
            count.num_blocks + 1,
        )
