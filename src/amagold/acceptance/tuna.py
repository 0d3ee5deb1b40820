"""An exact test that looks at a few examples: generalised TunaMH, with scalable MH where less than one example is expected.

| symbol | here |
|---|---|
| U_i = T_i + R_i | an example's energy: its Taylor polynomial about the reference, and the remainder |
| D_i = R_i(theta*) - R_i(theta) | `remainder_differences` |
| \\|D_i\\| <= c_i M, C = sum c_i | the bound; c_i from the data, M from the two positions, symmetric in them |
| kappa | how many times more examples than needed at least: more of them, less noise |

Each example i is met s_i ~ Poisson(phi_i) times, phi_i(theta, theta*) = kappa c_i M + min(0, D_i), and

    log a = rho + [log prior + T](theta*) - [log prior + T](theta) + sum_i s_i log(phi_i(theta*, theta) / phi_i(theta, theta*)).

phi_i(theta, theta*) + R_i(theta) is symmetric, so the flux is, whatever the s_i: exact. The examples come as the arrivals of a Poisson
process of rate kappa C M, each i with probability c_i / C, and an arrival counts with probability phi_i / (kappa c_i M). Arrivals are
looked at a block at a time, as many blocks as it takes.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from amagold import trees
from amagold.acceptance.alias import AliasTable
from amagold.acceptance.base import Decision
from amagold.acceptance.full import HOPELESS
from amagold.acceptance.remainders import differences_and_rounding
from amagold.energy import chunks
from amagold.energy.precise import add_to, subtract, zero
from amagold.mode.reference import Reference
from amagold.randomness import scaled, unit
from amagold.target import Posterior, Target, with_data
from amagold.target.bounds import LinearBounds

ROUNDING = 1e-3  # by which a remainder may seem to exceed its bound


class TunaMemory(NamedTuple):
    """What is remembered of a position."""

    position: trees.PyTree
    whitened: jax.Array  # L^T (theta - reference) with H = L L^T: its length is the distance in the norm of H
    energy: jax.Array  # -log prior + T(theta), without the constant


class Arrivals(NamedTuple):
    """A block of a Poisson process of rate one, and which examples arrive."""

    gaps: jax.Array
    slots: jax.Array
    uniforms: jax.Array
    keeps: jax.Array


class Count(NamedTuple):
    """How far a test is through its arrivals."""

    time: jax.Array
    log_ratio: jax.Array  # of the arrivals so far
    num_examples: jax.Array
    broken_bound: jax.Array
    num_blocks: jax.Array


@trees.record(static=("order", "block_size", "bounds"))
class TunaTest:
    """Exact, at a cost that does not grow with the data. `acceptance.tuna` makes it."""

    label = "exact"
    uses_work = True
    is_count_fixed = False  # how many examples a test looks at is in its decision

    order: int
    block_size: int
    bounds: LinearBounds
    reference: Reference
    whitening: jax.Array  # L^T
    weights: jax.Array  # c_i
    total: jax.Array  # C
    largest: jax.Array  # of the a_i
    table: AliasTable
    spread: jax.Array  # kappa = max(1, spread C M)
    noise: jax.Array  # the variance that the draws of examples bring to log a
    typical: jax.Array  # examples that a test of a posterior near its Laplace approximation looks at
    most: jax.Array  # arrivals above which all data are looked at instead

    def draw(self, key: jax.Array) -> Any:
        """The uniform of the test, and a key for the arrivals: how many are needed depends on the two positions."""
        uniform_key, arrivals_key = jax.random.split(key)
        return -jax.random.exponential(uniform_key), arrivals_key

    def remember(self, target: Target, position: trees.PyTree) -> TunaMemory:
        away = self.reference.away(position)
        polynomial = self.reference.taylor_energy(away) if self.order == 2 else jnp.dot(self.reference.gradient, away) * (self.order > 0)
        return TunaMemory(position, self.whitening @ away, polynomial - _with_data(target).log_prior(position))

    def energy(self, memory: TunaMemory) -> tuple[()]:
        return ()

    def decide(self, target: Target, draws: Any, memory: TunaMemory, proposed: trees.PyTree, work: jax.Array) -> Decision:
        posterior = _with_data(target)
        log_uniform, arrivals_key = draws
        there = self.remember(target, proposed)
        size = self._magnitude(memory, there)
        needed = self.total * size  # C M
        is_rare = needed < 1.0
        kappa = jnp.where(is_rare, 1.0, jnp.maximum(1.0, self.spread * needed))
        rate = kappa * needed
        # the rate is symmetric in the two positions, so both ways choose the same test
        scans = ~(rate < self.most)
        rate = jnp.where(scans, 0.0, rate)

        def look(count: Count) -> Count:
            arrivals = self._arrivals(jax.random.fold_in(arrivals_key, count.num_blocks))
            return self._look(posterior, memory.position, proposed, size, kappa, rate, is_rare, count, arrivals)

        begin = Count(jnp.float32(0.0), jnp.float32(0.0), jnp.int32(0), jnp.int32(-1), jnp.int32(0))
        count = jax.lax.while_loop(lambda count: count.time < rate, look, begin)
        # log a = rho + [log prior + T](theta*) - [log prior + T](theta) + the arrivals' part
        few = work + memory.energy - there.energy + count.log_ratio
        log_ratio = jnp.where(scans, work + scan_all(posterior, memory.position, proposed, scans), few)
        is_inside = target.is_inside(proposed)
        # an event of scalable MH makes the ratio zero, which is no accident
        is_divergent = is_inside & ~((log_ratio > HOPELESS) | (jnp.isneginf(log_ratio) & jnp.isneginf(count.log_ratio)))
        is_accepted = is_inside & jnp.isfinite(log_ratio) & (log_uniform < log_ratio)
        num_examples = jnp.where(scans, posterior.num_examples, count.num_examples)
        ratio = jnp.where(is_inside, log_ratio, -jnp.inf)
        return Decision(is_accepted, ratio, is_divergent, there, num_examples, count.broken_bound)

    def num_examples(self, target: Target) -> int:
        return self.block_size

    def _magnitude(self, here: TunaMemory, there: TunaMemory) -> jax.Array:
        distance, reach, other = (jnp.linalg.norm(v) for v in (here.whitened - there.whitened, here.whitened, there.whitened))
        return self.bounds.magnitude(self.order, distance, reach, other, self.largest)

    def _arrivals(self, key: jax.Array) -> Arrivals:
        # one call of the generator for all four, which is several times faster than four
        gaps, slots, uniforms, keeps = jax.random.bits(key, (4, self.block_size), jnp.uint32)
        return Arrivals(-jnp.log1p(-unit(gaps)), scaled(slots, self.table.size), unit(uniforms), unit(keeps))

    def _look(
        self,
        target: Posterior,
        position: trees.PyTree,
        proposed: trees.PyTree,
        size: jax.Array,
        kappa: jax.Array,
        rate: jax.Array,
        is_rare: jax.Array,
        count: Count,
        arrivals: Arrivals,
    ) -> Count:
        times = count.time + jnp.cumsum(arrivals.gaps)
        counts = times < rate
        examples = self.table.pick(arrivals.slots, arrivals.uniforms)
        rows = jax.tree.map(lambda leaf: leaf.at[examples].get(mode="promise_in_bounds"), target.data)
        differences, rounding = differences_and_rounding(self.bounds, self.reference, self.order, position, proposed, rows)
        bounds = self.weights.at[examples].get(mode="promise_in_bounds") * size
        # q_i = D_i / (c_i M); where the bound is zero so is the difference
        shares = jnp.where(bounds > 0, differences / jnp.where(bounds > 0, bounds, 1.0), 0.0)
        is_broken = counts & ~(jnp.abs(differences) <= (1.0 + ROUNDING) * bounds + rounding)
        shares = jnp.clip(shares, -1.0, 1.0)
        down, up = jnp.minimum(shares, 0.0) / kappa, jnp.minimum(-shares, 0.0) / kappa
        # kept with probability phi_i(theta, theta*) / (kappa c_i M) = 1 + min(0, q_i) / kappa
        is_kept = counts & (arrivals.keeps < 1.0 + down)
        tuna = jnp.where(is_kept, jnp.log1p(up) - jnp.log1p(jnp.where(is_kept, down, 0.0)), 0.0)
        # scalable MH: an event with probability max(0, q_i) rejects
        scalable = jnp.where(counts & (arrivals.keeps < jnp.maximum(shares, 0.0)), -jnp.inf, 0.0)
        found = jnp.where(is_rare, scalable, tuna).sum()
        broken = jnp.where(is_broken, examples, -1).max()
        return Count(
            times[-1],
            count.log_ratio + found,
            count.num_examples + counts.sum(),
            jnp.maximum(count.broken_bound, broken),
            count.num_blocks + 1,
        )


def scan_all(target: Posterior, position: trees.PyTree, proposed: trees.PyTree, scans: jax.Array) -> jax.Array:
    """log pi(theta*) - log pi(theta) over all data; a loop that does not turn where no chain asks for it."""
    length = min(target.num_examples, chunks.chunk_size_for(target, position))
    num_chunks = -(-target.num_examples // length)

    def visit(carry: tuple[jax.Array, Any]) -> tuple[jax.Array, Any]:
        index, total = carry
        # tied to the index, because the compiler would move work that does not change out of the loop, and do it always
        here, there, index = jax.lax.optimization_barrier((position, proposed, index))
        first = index * length
        start = jnp.minimum(first, target.num_examples - length)
        rows = chunks.rows_at(target.data, start, length)
        differences = target.log_likelihoods(there, rows) - target.log_likelihoods(here, rows)
        return index + 1, add_to(total, jnp.where(start + jnp.arange(length) >= first, differences, 0.0))

    _, total = jax.lax.while_loop(lambda carry: scans & (carry[0] < num_chunks), visit, (jnp.int32(0), zero()))
    return subtract(add_to(total, (target.log_prior(proposed) - target.log_prior(position))[None]), zero())


def _with_data(target: Target) -> Posterior:
    return with_data(target, "acceptance.tuna", "use acceptance.full()")
