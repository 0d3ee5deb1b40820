"""A Metropolis-Hastings test that stops early: as soon as a rule is sure on which side of its
threshold the mean difference lies.

    accept iff   log u < log a = rho + K(theta) - K(theta*) - sum_i D_i,
         that is iff the mean of the D_i < mu = (rho + K(theta) - K(theta*) - log u) / N

(the symbols are in differences.py). The rule looks at the mean of the examples so far, after more
and more of them. If it is never sure, the test ends with all data and is exact. How often it is
wrong before that is its error.
"""

from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp

from amagold.acceptance._acceptance_test import Acceptance, Decision
from amagold.acceptance._differences import Differences
from amagold.acceptance._full_test import HOPELESS
from amagold.acceptance._sequential_sampling import Schedule, Seen, sample_until_settled
from amagold.core import trees
from amagold.core.shapes import Flag, Position, RandomKey, Scalar
from amagold.target import Posterior, Target, with_data

# standard errors below the hopeless ratio at which an estimate is reported as a divergence
SURE = 5.0


class SequentialMemory(NamedTuple):
    """What is remembered of a position."""

    position: Position
    known: Scalar  # K = -log prior + T


@runtime_checkable
class StoppingRule(Protocol):
    """When an early end is safe enough."""

    def prepare(self, position: Position, proposed: Position) -> trees.PyTree:
        """What depends on the two positions alone."""
        ...

    def is_sure(
        self, seen: Seen, distance: Scalar, num_examples: int, prepared: trees.PyTree
    ) -> Flag:
        """Whether a mean at this distance from the threshold is on the right side of it."""
        ...


@trees.record(static=("label",))
class SequentialTest(Acceptance):
    """Approximate, unless it comes to all data. `acceptance.austerity` and `acceptance.confidence`
    make it.
    """

    uses_work = True
    is_count_fixed = False  # how many examples a test looks at is in its decision

    label: str
    differences: Differences
    looks: Schedule
    rule: StoppingRule

    def draw(self, key: RandomKey) -> tuple[Scalar, RandomKey]:
        """The uniform of the test, and a key for the order in which examples are looked at."""
        uniform_key, order_key = jax.random.split(key)
        return -jax.random.exponential(uniform_key), order_key

    def remember(self, target: Target, position: Position) -> SequentialMemory:
        return SequentialMemory(position, self.differences.known(as_posterior(target), position))

    def decide(
        self,
        target: Target,
        draws: tuple[Scalar, RandomKey],
        memory: SequentialMemory,
        proposed: Position,
        work: Scalar,
    ) -> Decision:
        posterior = as_posterior(target)
        num_examples = posterior.num_examples
        log_uniform, order_key = draws
        there = self.remember(target, proposed)
        known = work + memory.known - there.known
        threshold = (known - log_uniform) / num_examples
        prepared = self.rule.prepare(memory.position, proposed)

        def settles(seen: Seen) -> Flag:
            return self.rule.is_sure(seen, jnp.abs(seen.mean - threshold), num_examples, prepared)

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
        is_accepted = is_inside & jnp.isfinite(log_ratio) & (log_uniform < log_ratio)
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


def estimated_log_ratio(known: Scalar, seen: Seen, num_examples: int) -> Scalar:
    """log a with the mean of the examples seen for that of all; exact once all are seen."""
    return known - (seen.total.high + seen.total.low) * (
        num_examples / jnp.maximum(seen.num_seen, 1)
    )


def is_hopeless(log_ratio: Scalar, seen: Seen, num_examples: int) -> Flag:
    """Not finite, or so low that the estimate's error does not explain it."""
    return ~(jnp.isfinite(log_ratio) & (log_ratio + SURE * seen.error(num_examples) > HOPELESS))


def as_posterior(target: Target) -> Posterior:
    return with_data(target, "a test on some of the data", "use acceptance.full()")
