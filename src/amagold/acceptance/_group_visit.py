"""Rows of many groups for many tests at once: a random l_g for every group that stands for what the
remainders of its rows add to log a.

Groups whose bound is so wide that arrivals would be more than its rows are scanned: l_g = - sum
D_i. The others' rows arrive as a Poisson process, group g at the rate kappa_g n_g B_g with |D_i| <=
B_g, each row of it as likely; an arrival counts with probability 1 + min(0, q) / kappa, q = D_i /
B_g, and adds log(1 + min(0, -q) / kappa) - log(1 + min(0, q) / kappa), as in `_tuna.py`. Bounds and
kappa are symmetric in the two positions, so that both ways scan the same groups. Superposing the
groups' arrivals in one stream is only a way to draw independent Poisson numbers.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax import Array

from amagold.acceptance._arrivals import ROUNDING, arrivals_of
from amagold.acceptance._group_rows import GroupRows
from amagold.acceptance._level_rows import scaled
from amagold.acceptance._remainders import Remainder, differences_and_rounding
from amagold.core.array_types import Float32, Int32
from amagold.core.shapes import Position, RandomKey, Scalar, Whole
from amagold.mode._reference import Reference
from amagold.target import Posterior
from amagold.target._linear_bounds import LinearBounds

PARTS = 2**30  # that the rate is cut into, so that groups are drawn exactly as likely as they count
NUM_WORDS = 2  # group, and row within it

PerGroup = Float32[Array, " groups"]


class Visit(NamedTuple):
    """What the rows of groups said."""

    log_ratios: PerGroup  # l_g
    num_examples: Whole
    broken_bound: Whole
    squares: Scalar  # the sum of q^2 over arrivals
    num_arrivals: Whole


def together(visits: Any) -> Visit:
    """One for several visits, which are stacked on a leading axis."""
    return Visit(
        visits.log_ratios.sum(axis=0),
        visits.num_examples.sum(),
        visits.broken_bound.max(),
        visits.squares.sum(),
        visits.num_arrivals.sum(),
    )


class GroupQuestion(NamedTuple):
    """Two positions, and how far a row's remainder can differ between them."""

    here: Position
    there: Position
    bounds: PerGroup  # B_g
    kappa: PerGroup


class Stream(NamedTuple):
    """Rows to look at: all of the scanned groups, then arrivals."""

    is_scanned: Array
    scan_ends: Int32[Array, " groups"]
    ends: Array  # of the groups' parts of the rate
    bounds: PerGroup  # of a row, by the parts: rounded up
    num_scanned: Whole
    rate: Scalar  # of arrivals


def stream_of(rows: GroupRows, question: GroupQuestion) -> Stream:
    counts = rows.counts
    is_scanned = (question.kappa * question.bounds >= 1.0) & (counts > 0)
    scan_ends = jnp.cumsum(jnp.where(is_scanned, counts, 0))
    rates = jnp.where(is_scanned, 0.0, question.kappa * counts * question.bounds)
    total = jnp.sum(rates)
    in_parts = jnp.where(total > 0, rates / jnp.where(total > 0, total, 1.0), 0.0) * PARTS
    parts = jnp.ceil(in_parts).astype(jnp.uint32)
    part = total / PARTS
    ends = jnp.cumsum(parts)
    own = parts.astype(jnp.float32) * part
    weight = question.kappa * counts
    bounds = jnp.where(weight > 0, own / jnp.where(weight > 0, weight, 1.0), 0.0)
    return Stream(
        is_scanned,
        scan_ends,
        ends,
        jnp.where(is_scanned, question.bounds, bounds),
        scan_ends[-1],
        ends[-1].astype(jnp.float32) * part,
    )


def visit(
    target: Posterior,
    bounds: LinearBounds,
    reference: Reference,
    rows: GroupRows,
    question: GroupQuestion,
    key: RandomKey,
    block_size: int,
) -> Visit:
    """As many blocks of rows as it takes; never fewer."""

    def differences(examples: Int32[Array, " rows"]) -> Remainder:
        looked_at = target.examples.rows(examples)
        return differences_and_rounding(
            bounds, reference, 2, question.here, question.there, looked_at
        )

    return visit_by(differences, rows, question, key, block_size)


def visit_by(
    differences_of: Callable[[Int32[Array, " rows"]], Remainder],
    rows: GroupRows,
    question: GroupQuestion,
    key: RandomKey,
    block_size: int,
) -> Visit:
    """The same where D_i of rows are asked for by their numbers."""
    stream = stream_of(rows, question)
    last_group = rows.counts.shape[0] - 1

    def look(carry: tuple[Whole, Scalar, Visit]) -> tuple[Whole, Scalar, Visit]:
        number, time, found = carry
        items = number * block_size + jnp.arange(block_size, dtype=jnp.int32)
        arrivals = arrivals_of(key, number, NUM_WORDS, block_size)
        words = arrivals.words
        is_scan = items < stream.num_scanned
        # a Poisson process of rate one: those before the time `rate` arrive
        times = time + jnp.cumsum(jnp.where(is_scan, 0.0, arrivals.waiting_times))
        is_item = is_scan | (times < stream.rate)
        scanned = jnp.searchsorted(stream.scan_ends, items, side="right")
        drawn = scaled(words[0], jnp.broadcast_to(stream.ends[-1], words[0].shape))
        drawn = jnp.searchsorted(stream.ends, drawn, side="right")
        groups = jnp.minimum(jnp.where(is_scan, scanned, drawn), last_group).astype(jnp.int32)
        counts = rows.counts[groups]
        of_scan = items - (stream.scan_ends[groups] - counts)
        of_draw = scaled(words[1], counts.astype(jnp.uint32)).astype(jnp.int32)
        places = jnp.where(is_item, jnp.where(is_scan, of_scan, of_draw), 0)
        groups = jnp.where(is_item, groups, 0)
        # a group without rows is never drawn; its place would be another's
        examples = jnp.where(is_item, rows.row(groups, places), 0)
        differences, rounding = differences_of(examples)
        bound, kappa = stream.bounds[groups], question.kappa[groups]
        is_arrival = is_item & ~is_scan
        is_broken = is_item & ~(jnp.abs(differences) <= (1.0 + ROUNDING) * bound + rounding)
        share = jnp.where(bound > 0, differences / jnp.where(bound > 0, bound, 1.0), 0.0)
        share = jnp.clip(share, -1.0, 1.0)
        down, up = jnp.minimum(share, 0.0) / kappa, jnp.minimum(-share, 0.0) / kappa
        is_kept = is_arrival & (arrivals.keeps < 1.0 + down)
        ratio = jnp.where(is_kept, jnp.log1p(up) - jnp.log1p(jnp.where(is_kept, down, 0.0)), 0.0)
        ratio = jnp.where(is_item & is_scan, -differences, ratio)
        told = Visit(
            found.log_ratios.at[groups].add(jnp.where(is_item, ratio, 0.0)),
            found.num_examples + is_item.sum(dtype=jnp.int32),
            jnp.maximum(found.broken_bound, jnp.where(is_broken, examples, -1).max()),
            found.squares + jnp.sum(jnp.where(is_arrival, share**2, 0.0)),
            found.num_arrivals + is_arrival.sum(dtype=jnp.int32),
        )
        return number + 1, times[-1], told

    def is_left(carry: tuple[Whole, Scalar, Visit]) -> Array:
        number, time, _ = carry
        return (number * block_size < stream.num_scanned) | (time < stream.rate)

    none = Visit(
        jnp.zeros_like(question.bounds),
        jnp.int32(0),
        jnp.int32(-1),
        jnp.float32(0.0),
        jnp.int32(0),
    )
    return jax.lax.while_loop(is_left, look, (jnp.int32(0), jnp.float32(0.0), none))[2]
