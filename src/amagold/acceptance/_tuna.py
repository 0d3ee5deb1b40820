"""An exact test that looks at a few examples: generalised TunaMH, with scalable MH where less than
one example is expected.

| symbol | here |
|---|---|
| U_i = T_i + R_i | an example's energy: its Taylor polynomial, and the remainder |
| D_i = R_i(theta*) - R_i(theta) | `remainder_differences` |
| \\|D_i\\| <= c_i M, C = sum c_i | the bound; c_i from the data, M symmetric in the positions |
| kappa | how many times more examples than needed at least: more of them, less noise |

Each example i is met s_i ~ Poisson(phi_i) times, phi_i(theta, theta*) = kappa c_i M + min(0, D_i),
and

    log a = rho + [log prior + T](theta*) - [log prior + T](theta) + sum_i s_i log(phi_i(theta*,
    theta) / phi_i(theta, theta*)).

phi_i(theta, theta*) + R_i(theta) is symmetric, so the flux is, whatever the s_i: exact. The
examples come as the arrivals of a Poisson process of rate kappa C M, each i with probability c_i /
C, and an arrival counts with probability phi_i / (kappa c_i M). Arrivals are looked at a block at a
time, as many blocks as it takes.
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
from amagold.acceptance._remainders import differences_and_rounding
from amagold.core import trees
from amagold.core.shapes import (
    Flag,
    Position,
    Scalar,
    Vector,
)
from amagold.mode._reference import Reference
from amagold.mode._row_bounds import Norm, TaylorBound
from amagold.target import Posterior, Target
from amagold.target._linear_bounds import LinearBounds


class TunaMemory(NamedTuple):
    """What is remembered of a position."""

    position: Position
    # L^T (theta - reference) with H = L L^T: its length is the distance in the norm of H
    whitened: Vector
    energy: Scalar  # -log prior + T(theta), without the constant


@trees.record(static=("order", "block_size", "bounds", "is_scalar", "usual"))
class TunaTest(ArrivalTest):
    """Exact, at a cost that does not grow with the data. `acceptance.tuna` makes it."""

    name = "tuna"
    label = "exact"

    order: int
    block_size: int
    bounds: LinearBounds
    is_scalar: bool  # whether an example's predictor is one number, whose bounds are tighter
    reference: Reference
    largest: Scalar  # of the a_i
    table: ArrivalTable  # of c_i, and C
    spread: Scalar  # kappa = max(1, spread C M)
    noise: Scalar  # the variance that the draws of examples bring to log a
    # examples that a test of a posterior near its Laplace approximation looks at
    typical: Scalar
    most: Scalar  # arrivals above which all data are looked at instead
    usual: int = 0  # candidates that nearly all tests can do with; 0 where it is not known

    @property
    def num_foreseen(self) -> int:
        return min(self.block_size, self.usual) or self.block_size

    @property
    def horizon(self) -> Scalar:
        return 3.0 + 5.0 * self.typical

    @property
    def norm(self) -> Norm:
        """In which the bounds are, and hence distances."""
        bound = self.table.bound
        assert isinstance(bound, TaylorBound)
        return bound.norm

    def remember(self, target: Target, position: Position) -> TunaMemory:
        away = self.reference.away(position)
        energy = self.reference.taylor_energy(away, self.order) - self.with_data(target).log_prior(
            position
        )
        return TunaMemory(position, self.norm.whitening @ away, energy)

    def question(self, target: Posterior, memory: TunaMemory, proposed: Position) -> Question:
        there = self.remember(target, proposed)
        size = self._magnitude(memory, there)
        needed = self.table.total * size  # C M
        is_rare = needed < 1.0
        kappa = jnp.where(is_rare, 1.0, jnp.maximum(1.0, self.spread * needed))
        rate = kappa * needed * self.table.excess  # of candidates
        # the rate is symmetric in the two positions, so both ways choose the same test; it is
        # infinite where either is beyond the radius of the bounds
        scans = ~(rate < self.most)
        rate = jnp.where(scans, 0.0, rate)

        def look(count: Count, arrivals: Arrivals) -> Count:
            return self._look(
                target, memory.position, proposed, size, kappa, rate, is_rare, count, arrivals
            )

        return Question(there, rate, scans, look)

    def known_reference(self) -> Reference:
        return self.reference

    def known_norm(self) -> Norm:
        return self.norm

    def _magnitude(self, here: TunaMemory, there: TunaMemory) -> Scalar:
        distance, reach, other = (
            jnp.linalg.norm(v)
            for v in (here.whitened - there.whitened, here.whitened, there.whitened)
        )
        return self.bounds.magnitude(
            self.order,
            distance,
            reach,
            other,
            self.largest,
            is_scalar=self.is_scalar,
            radius=self.bounds.radius(here.whitened.shape[0]),
        )

    def _look(
        self,
        target: Posterior,
        position: Position,
        proposed: Position,
        size: Scalar,
        kappa: Scalar,
        rate: Scalar,
        is_rare: Flag,
        count: Count,
        arrivals: Arrivals,
    ) -> Count:
        found = look_at(target, self.table, rate, count, arrivals)
        differences, rounding = differences_and_rounding(
            self.bounds, self.reference, self.order, position, proposed, found.rows
        )
        bounds = found.weights * size
        # q_i = D_i / (c_i M); where the bound is zero so is the difference
        shares = jnp.where(bounds > 0, differences / jnp.where(bounds > 0, bounds, 1.0), 0.0)
        is_broken = found.is_read & ~(jnp.abs(differences) <= (1.0 + ROUNDING) * bounds + rounding)
        shares = jnp.clip(shares, -1.0, 1.0)
        down, up = jnp.minimum(shares, 0.0) / kappa, jnp.minimum(-shares, 0.0) / kappa
        # kept with probability phi_i(theta, theta*) / (kappa c_i M) = 1 + min(0, q_i) / kappa
        is_kept = found.counts & (arrivals.keeps < 1.0 + down)
        tuna = jnp.where(is_kept, jnp.log1p(up) - jnp.log1p(jnp.where(is_kept, down, 0.0)), 0.0)
        # scalable MH: an event with probability max(0, q_i) rejects
        scalable = jnp.where(
            found.counts & (arrivals.keeps < jnp.maximum(shares, 0.0)), -jnp.inf, 0.0
        )
        log_ratio = jnp.where(is_rare, scalable, tuna).sum()
        broken = jnp.where(is_broken, found.examples, -1).max()
        return Count(
            found.last,
            count.log_ratio + log_ratio,
            count.num_examples + found.is_read.sum(dtype=jnp.int32),
            jnp.maximum(count.broken_bound, broken),
            count.num_blocks + 1,
        )
