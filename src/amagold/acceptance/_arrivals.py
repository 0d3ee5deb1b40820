"""Examples that arrive as a Poisson process, each as likely as its bound is large: what exact tests
on a few examples share.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol

import jax
import jax.numpy as jnp

from amagold.acceptance._acceptance_test import Decision
from amagold.acceptance._alias_table import AliasTable
from amagold.acceptance._full_test import HOPELESS
from amagold.core import trees
from amagold.core.randomness import scaled, unit
from amagold.data import Chunk
from amagold.energy._chunks import chunk_size_for
from amagold.energy._wide_sums import Wide, add_to, subtract, zero
from amagold.target import Posterior

ROUNDING = 1e-3  # by which an example may seem to exceed its bound


class Place(Protocol):
    """What such a test remembers of a position."""

    @property
    def position(self) -> trees.PyTree: ...

    @property
    def energy(self) -> jax.Array:
        """-log prior and what is known of all data, without the constant."""
        ...


class Arrivals(NamedTuple):
    """A block of a Poisson process of rate one, and which examples arrive."""

    waiting_times: jax.Array
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


def draw_test(key: jax.Array) -> tuple[jax.Array, jax.Array]:
    """The logarithm of the test's uniform number, and a key for the arrivals: how many are needed
    depends on the two positions.
    """
    uniform_key, arrivals_key = jax.random.split(key)
    return -jax.random.exponential(uniform_key), arrivals_key


def count_arrivals(
    rate: jax.Array,
    key: jax.Array,
    table: AliasTable,
    block_size: int,
    look: Callable[[Count, Arrivals], Count],
) -> Count:
    """Look at the arrivals before time `rate`, a block after the other, as many blocks as
    it takes.
    """

    def block(count: Count) -> Count:
        # one call of the generator for all four
        bits = jax.random.bits(
            jax.random.fold_in(key, count.num_blocks), (4, block_size), jnp.uint32
        )
        waiting_times, slots, uniforms, keeps = bits
        return look(
            count,
            Arrivals(
                -jnp.log1p(-unit(waiting_times)),
                scaled(slots, table.size),
                unit(uniforms),
                unit(keeps),
            ),
        )

    begin = Count(jnp.float32(0.0), jnp.float32(0.0), jnp.int32(0), jnp.int32(-1), jnp.int32(0))
    return jax.lax.while_loop(lambda count: count.time < rate, block, begin)


def conclude(
    target: Posterior,
    log_uniform: jax.Array,
    here: Place,
    there: Place,
    work: jax.Array,
    scans: jax.Array,
    count: Count,
) -> Decision:
    """The decision from what is known and the arrivals' part of log a, or from all data where
    `scans` says so.
    """
    # log a = rho + [log prior + known](theta*) - [log prior + known](theta) + the arrivals' part
    few = work + here.energy - there.energy + count.log_ratio
    log_ratio = jnp.where(scans, work + scan_all(target, here.position, there.position, scans), few)
    is_inside = target.is_inside(there.position)
    # an arrival may make the ratio zero, which is no accident
    is_divergent = is_inside & ~(
        (log_ratio > HOPELESS) | (jnp.isneginf(log_ratio) & jnp.isneginf(count.log_ratio))
    )
    is_accepted = is_inside & jnp.isfinite(log_ratio) & (log_uniform < log_ratio)
    num_examples = jnp.where(scans, target.num_examples, count.num_examples)
    ratio = jnp.where(is_inside, log_ratio, -jnp.inf)
    return Decision(is_accepted, ratio, is_divergent, there, num_examples, count.broken_bound)


def scan_all(
    target: Posterior, position: trees.PyTree, proposed: trees.PyTree, scans: jax.Array
) -> jax.Array:
    """log pi(theta*) - log pi(theta) over all data; a loop that does not turn where no chain asks
    for it.
    """

    def visit(total: Wide, chunk: Chunk, ends: tuple[trees.PyTree, trees.PyTree]) -> Wide:
        here, there = (target.log_likelihoods(at, chunk.rows) for at in ends)
        return add_to(total, chunk.only_new(there - here))

    chunk_size = chunk_size_for(target, position)
    total = target.examples.scan_if(scans, visit, zero(), (position, proposed), chunk_size)
    return subtract(
        add_to(total, (target.log_prior(proposed) - target.log_prior(position))[None]), zero()
    )
