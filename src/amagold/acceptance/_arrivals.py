"""Examples that arrive as a Poisson process, each as likely as its bound is large: what exact tests
on a few examples share.
"""

from collections.abc import Callable
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import Array

from amagold.acceptance._acceptance_test import Decision
from amagold.acceptance._arrival_table import ArrivalTable
from amagold.acceptance._full_test import HOPELESS
from amagold.core.array_types import Bool, Float32, Int32, UInt32
from amagold.core.randomness import unit
from amagold.core.shapes import Flag, PerRow, Position, RandomKey, Rows, Scalar, Whole
from amagold.data import Chunk, while_any
from amagold.energy._chunks import chunk_size_for
from amagold.energy._wide_sums import Wide, add_to, subtract, zero
from amagold.target import Posterior

ROUNDING = 1e-3  # by which an example may seem to exceed its bound

# the logarithm of the test's uniform number, and a key for the arrivals
Draws = tuple[Scalar, RandomKey]


@runtime_checkable
class Place(Protocol):
    """What such a test remembers of a position."""

    @property
    def position(self) -> Position: ...

    @property
    def energy(self) -> Scalar:
        """-log prior and what is known of all data, without the constant."""
        ...


class Arrivals(NamedTuple):
    """Candidates, a block of a Poisson process of rate one."""

    waiting_times: Float32[Array, " arrivals"]
    words: UInt32[Array, "words arrivals"]  # random bits, from which the table names examples
    keeps: Float32[Array, " arrivals"]
    rows: Rows | None = None  # of the candidates, where they were brought ahead


class Looked(NamedTuple):
    """The candidates that come in time, with their rows."""

    last: Scalar  # the time of the block's last candidate
    is_read: Bool[Array, " arrivals"]  # comes in time
    counts: Bool[Array, " arrivals"]  # and arrives
    examples: Int32[Array, " arrivals"]
    rows: Rows
    weights: PerRow  # c_i


class Count(NamedTuple):
    """How far a test is through its arrivals."""

    time: Scalar
    log_ratio: Scalar  # of the arrivals so far
    num_examples: Whole
    broken_bound: Whole
    num_blocks: Whole


Look = Callable[[Count, Arrivals], Count]


def draw_test(key: RandomKey) -> Draws:
    """The logarithm of the test's uniform number, and a key for the arrivals: how many are needed
    depends on the two positions.
    """
    uniform_key, arrivals_key = jax.random.split(key)
    return -jax.random.exponential(uniform_key), arrivals_key


def arrivals_of(key: RandomKey, number: Whole, num_words: int, block_size: int) -> Arrivals:
    """A block of them, each with so many words; one call of the generator for all its numbers."""
    waiting_times, *words, keeps = jax.random.bits(
        jax.random.fold_in(key, number), (2 + num_words, block_size), jnp.uint32
    )
    return Arrivals(-jnp.log1p(-unit(waiting_times)), jnp.stack(words), unit(keeps))


def none_counted() -> Count:
    return Count(jnp.float32(0.0), jnp.float32(0.0), jnp.int32(0), jnp.int32(-1), jnp.int32(0))


def count_arrivals(
    target: Posterior,
    rate: Scalar,
    key: RandomKey,
    num_words: int,
    block_size: int,
    look: Look,
) -> Count:
    """Look at the candidates before time `rate`, a block after the other, as many blocks as
    it takes.
    """

    def block(count: Count) -> Count:
        return look(count, arrivals_of(key, count.num_blocks, num_words, block_size))

    return while_any(target.examples, lambda count: count.time < rate, block, none_counted())


def look_at(
    target: Posterior, table: ArrivalTable, rate: Scalar, count: Count, arrivals: Arrivals
) -> Looked:
    """The candidates before time `rate`; rows are read for these alone."""
    times = count.time + jnp.cumsum(arrivals.waiting_times)
    examples, weights = table.candidates(arrivals.words)
    is_read = (times < rate) & (examples < table.num_rows)
    # the others are not looked at: one row, which is at hand, stands for them all
    examples = jnp.where(is_read, examples, 0)
    rows = target.examples.rows(examples) if arrivals.rows is None else arrivals.rows
    arrives, own = table.arriving(arrivals.words, weights, rows)
    return Looked(times[-1], is_read, is_read & arrives, examples, rows, own)


def conclude(
    target: Posterior,
    log_uniform: Scalar,
    here: Place,
    there: Place,
    work: Scalar,
    scans: Flag | None,
    count: Count,
) -> Decision:
    """The decision from what is known and the arrivals' part of log a, or from all data where
    `scans` says so; None never does.
    """
    # log a = rho + [log prior + known](theta*) - [log prior + known](theta) + the arrivals' part
    log_ratio = work + here.energy - there.energy + count.log_ratio
    num_examples = count.num_examples
    if scans is not None:
        of_all = work + scan_all(target, here.position, there.position, scans)
        log_ratio = jnp.where(scans, of_all, log_ratio)
        num_examples = jnp.where(scans, target.num_examples, num_examples)
    is_inside = target.is_inside(there.position)
    # an arrival may make the ratio zero, which is no accident
    is_divergent = is_inside & ~(
        (log_ratio > HOPELESS) | (jnp.isneginf(log_ratio) & jnp.isneginf(count.log_ratio))
    )
    is_accepted = is_inside & jnp.isfinite(log_ratio) & (log_uniform < log_ratio)
    ratio = jnp.where(is_inside, log_ratio, -jnp.inf)
    return Decision(is_accepted, ratio, is_divergent, there, num_examples, count.broken_bound)


def scan_all(target: Posterior, position: Position, proposed: Position, scans: Flag) -> Scalar:
    """log pi(theta*) - log pi(theta) over all data; a loop that does not turn where no chain asks
    for it.
    """

    def visit(total: Wide, chunk: Chunk, ends: tuple[Position, Position]) -> Wide:
        here, there = (target.log_likelihoods(at, chunk.rows) for at in ends)
        return add_to(total, chunk.only_new(there - here))

    chunk_size = chunk_size_for(target, position)
    total = target.examples.scan_if(scans, visit, zero(), (position, proposed), chunk_size)
    return subtract(
        add_to(total, (target.log_prior(proposed) - target.log_prior(position))[None]), zero()
    )
