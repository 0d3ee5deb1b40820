"""The minibatch Barker test of Seita, Pan, Chen and Canny (2017): the sampling error of log a takes
part in the test's own randomness.

Barker's test accepts with probability 1 / (1 + exp(-log a)), that is if log a + X > 0 with X
logistic. A logistic number is the sum of a standard normal one and a correction (correction.py). An
estimate of log a from some of the examples has a nearly normal error of variance v; once v is at
most one, it serves as part of the normal number:

    accept iff   estimate + N(0, 1 - v) + correction > 0.

Exact if the error were normal and v known. It is least so where few examples are looked at and a
few of them decide.

At log a = 0 it accepts half of the time, where other tests always do, so more trajectories are
lost. With a kept momentum every loss turns the chain around: use it with `resample_momentum=True`.
"""

from dataclasses import dataclass

import jax
import jax.numpy as jnp

from amagold.acceptance._acceptance_test import Acceptance, Decision
from amagold.acceptance._differences import Differences, checked_order, differences_of
from amagold.acceptance._logistic_correction import correction
from amagold.acceptance._sequential_sampling import (
    Schedule,
    Seen,
    check_schedule,
    sample_until_settled,
    schedule,
)
from amagold.acceptance._sequential_test import (
    SequentialMemory,
    as_posterior,
    estimated_log_ratio,
    is_hopeless,
)
from amagold.core import checks, trees
from amagold.core.shapes import Flag, Position, RandomKey, Scalar
from amagold.mode._reference import Reference
from amagold.target import Target, with_data

# a normal and a uniform number, and a key for the order of the examples
Draws = tuple[Scalar, Scalar, RandomKey]


@trees.record(static=("label",))
class BarkerTest(Acceptance):
    """Approximate, unless it comes to all data. `acceptance.barker` makes it."""

    uses_work = True
    is_count_fixed = False  # how many examples a test looks at is in its decision
    needs_fresh_momentum = True  # it accepts at most half of what other tests accept for certain

    label: str
    differences: Differences
    looks: Schedule
    variance: Scalar

    def draw(self, key: RandomKey) -> Draws:
        """A normal and a uniform number, and a key for the order in which examples are
        looked at.
        """
        normal_key, uniform_key, order_key = jax.random.split(key, 3)
        tiny = jnp.finfo(jnp.float32).tiny
        return (
            jax.random.normal(normal_key),
            jax.random.uniform(uniform_key, minval=tiny),
            order_key,
        )

    def remember(self, target: Target, position: Position) -> SequentialMemory:
        return SequentialMemory(position, self.differences.known(as_posterior(target), position))

    def decide(
        self,
        target: Target,
        draws: Draws,
        memory: SequentialMemory,
        proposed: Position,
        work: Scalar,
    ) -> Decision:
        posterior = as_posterior(target)
        num_examples = posterior.num_examples
        normal, uniform, order_key = draws
        there = self.remember(target, proposed)
        known = work + memory.known - there.known

        def settles(seen: Seen) -> Flag:
            return seen.error(num_examples) ** 2 <= self.variance

        is_inside = target.is_inside(proposed)
        starts = is_inside & jnp.isfinite(known)
        seen = sample_until_settled(
            posterior,
            self.differences,
            memory.position,
            proposed,
            order_key,
            self.looks,
            starts,
            settles,
        )
        log_ratio = estimated_log_ratio(known, seen, num_examples)
        # N(0, 1 - v) and the correction, which add up to a logistic number with the estimate's own
        # error
        partly = normal * jnp.sqrt(
            jnp.maximum(1.0 - seen.error(num_examples) ** 2, 0.0)
        ) + correction(uniform)
        # of all data there is no error left: the logistic number itself
        noise = jnp.where(
            seen.num_seen == num_examples, jnp.log(uniform) - jnp.log1p(-uniform), partly
        )
        is_accepted = is_inside & jnp.isfinite(log_ratio) & (log_ratio + noise > 0.0)
        is_divergent = is_inside & is_hopeless(log_ratio, seen, num_examples)
        return Decision(
            is_accepted,
            jnp.where(is_inside, log_ratio, -jnp.inf),
            is_divergent,
            there,
            seen.num_seen,
        )

    def num_examples(self, target: Target) -> int:
        return self.looks.block_size


@dataclass(frozen=True)
class Barker:
    """The minibatch Barker test, before it knows its target."""

    variance: float
    batch_size: int
    growth: float
    order: int
    center: trees.PyTree

    def bind(self, target: Target, reference: Reference | None = None) -> BarkerTest:
        """The test for a target; with control variates a pass or two over the data for the
        reference, unless the gradient has one.
        """
        posterior = with_data(target, "acceptance.barker", "use acceptance.full()")
        differences = differences_of(posterior, self.order, self.center, reference)
        looks = schedule(posterior.num_examples, self.batch_size, self.growth)
        return BarkerTest(
            f"approximate (barker, variance {self.variance:g})",
            differences,
            looks,
            jnp.float32(self.variance),
        )


def barker(
    variance: float = 1.0,
    batch_size: int = 100,
    order: int | None = 2,
    center: trees.PyTree = None,
    *,
    growth: float = 2.0,
) -> Barker:
    """An approximate test that looks at examples until their error is smaller than Barker's own
    noise, and then counts it as part of it.

    Args:
      variance: of the estimated log ratio, up to which it is good enough; at most 1. Less of it is
        a smaller error.
      batch_size: examples before the first look, and in each block after it.
      order: of the Taylor polynomials about the reference that are subtracted from every example's
        energy; 0 or None: none are.
      center: the reference position. None takes that of the gradient's control variates, or the
        mode.
      growth: from one look to the next; 1 adds `batch_size` examples each time, as the paper does.
    """
    checks.number(
        "variance",
        variance,
        above=0.0,
        remedy="give the variance of log a that is good enough, up to 1",
    )
    if variance > 1.0:
        raise ValueError(
            f"variance must be at most 1, got {variance:g}: the logistic noise has room for no more"
        )
    check_schedule(batch_size, growth)
    return Barker(
        float(variance), int(batch_size), float(growth), checked_order(order, center), center
    )
