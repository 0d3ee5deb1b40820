"""More and more examples, without replacement, until a rule is content or all of them have been
looked at.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.acceptance._differences import Differences
from amagold.acceptance._random_order import random_order
from amagold.core import checks, trees
from amagold.core.array_types import Bool, Int32
from amagold.core.shapes import Flag, PerRow, Position, RandomKey, Scalar, Whole
from amagold.data import while_any
from amagold.energy._wide_sums import Wide, add_to, zero
from amagold.target import Posterior


class Seen(NamedTuple):
    """What the examples so far say of all D_i."""

    num_seen: Whole
    total: Wide  # their sum, in float64
    squares: Scalar  # sum of the squared deviations from their mean
    smallest: Scalar
    largest: Scalar
    num_looks: Whole
    is_settled: Flag

    @property
    def mean(self) -> Scalar:
        return self.total.high / jnp.maximum(self.num_seen, 1)

    @property
    def variance(self) -> Scalar:
        """Of one D_i, without bias for draws with replacement from the examples."""
        return self.squares / jnp.maximum(self.num_seen - 1, 1)

    def error(self, num_examples: int) -> Scalar:
        """The standard error of sum_i D_i = N mean, zero once all are seen."""
        # N^2 s^2 / m (1 - m / N)
        left = (num_examples - self.num_seen) / num_examples
        return num_examples * jnp.sqrt(self.variance * left / jnp.maximum(self.num_seen, 1))


@trees.record(static=("block_size",))
class Schedule:
    """After how many examples the rule is asked; they come a block at a time."""

    block_size: int
    ends: Int32[Array, " looks"]


def schedule(num_examples: int, batch_size: int, growth: float) -> Schedule:
    """Looks after `batch_size` examples, then after `growth` times as many as before, in whole
    blocks, up to all of them.
    """
    block = min(batch_size, num_examples)
    ends = [block]
    while ends[-1] < num_examples:
        ends.append(
            min(num_examples, max(ends[-1] + block, block * math.ceil(growth * ends[-1] / block)))
        )
    return Schedule(block, jnp.asarray(np.array(ends), jnp.int32))


def check_schedule(batch_size: object, growth: object) -> None:
    checks.whole_number(
        "batch_size",
        batch_size,
        at_least=2,
        remedy="give how many examples a test starts with; 100 is usual",
    )
    checks.number(
        "growth",
        growth,
        at_least=1.0,
        remedy="give the factor from one look to the next; 1 adds batch_size each time",
    )


def sample_until_settled(
    target: Posterior,
    differences: Differences,
    position: Position,
    proposed: Position,
    key: RandomKey,
    looks: Schedule,
    starts: Flag,
    settles: Callable[[Seen], Flag],
) -> Seen:
    """Blocks of a fresh random order until `settles(seen)` at a look, or all data; none where it
    does not start.
    """
    num_examples = target.num_examples
    order = random_order(key, num_examples)

    def goes_on(seen: Seen) -> Flag:
        return (
            starts
            & ~seen.is_settled
            & (seen.num_seen < num_examples)
            & jnp.isfinite(seen.total.high)
        )

    def look(seen: Seen) -> Seen:
        places = seen.num_seen + jnp.arange(looks.block_size)
        is_new = places < num_examples
        examples = order(jnp.minimum(places, num_examples - 1))
        rows = target.examples.rows(examples)
        found = differences.between(target, position, proposed, rows)
        seen = _add(seen, found, is_new)
        is_look = seen.num_seen >= looks.ends[seen.num_looks]
        return seen._replace(is_settled=is_look & settles(seen), num_looks=seen.num_looks + is_look)

    nothing = jnp.float32(0.0)
    begin = Seen(
        jnp.int32(0),
        zero(),
        nothing,
        jnp.float32(jnp.inf),
        -jnp.float32(jnp.inf),
        jnp.int32(0),
        jnp.bool_(False),
    )
    return while_any(target.examples, goes_on, look, begin)


def _add(seen: Seen, found: PerRow, is_new: Bool[Array, " rows"]) -> Seen:
    """Join a block to what was seen, by means and deviations, because squares of large numbers
    would cancel.
    """
    fresh = is_new.sum()
    mean = jnp.where(is_new, found, 0.0).sum() / fresh
    apart = mean - seen.mean
    before, after = seen.num_seen.astype(mean.dtype), fresh.astype(mean.dtype)
    # S = S_a + S_b + (mean_b - mean_a)^2 n_a n_b / (n_a + n_b)
    squares = jnp.where(is_new, (found - mean) ** 2, 0.0).sum() + apart**2 * before * (
        after / (before + after)
    )
    return seen._replace(
        num_seen=seen.num_seen + fresh,
        total=add_to(seen.total, jnp.where(is_new, found, 0.0)),
        squares=seen.squares + squares,
        smallest=jnp.minimum(seen.smallest, jnp.where(is_new, found, jnp.inf).min()),
        largest=jnp.maximum(seen.largest, jnp.where(is_new, found, -jnp.inf).max()),
    )
