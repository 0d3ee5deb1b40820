"""Delayed acceptance (Christen and Fox, 2005): a cheap test first, all data only for the proposals
that pass it. Exact for any model.

With T the Taylor polynomial about the reference of sum_i U_i, U_i = -log likelihood_i, log a = log
a_1 + log a_2, where

    log a_1 = rho + [log prior - T](theta*) - [log prior - T](theta),
    log a_2 = [sum_i log likelihood_i + T](theta*) - [sum_i log likelihood_i + T](theta),

and the proposal is accepted with probability alpha = min(1, a_1) min(1, a_2). On the reversed path
both logarithms change sign, and min(1, a) / min(1, 1 / a) = a for each factor, so alpha /
alpha_reversed = a_1 a_2 = a: the accepted flux is symmetric, which is all that either the
reversible or the irreversible chain needs. It accepts less often than the test over all data, since
alpha <= min(1, a).

The ratio reported is a_2 where the first stage passed, and zero where it did not (a_2 is then
unknown): the mean of min(1, ratio) is the probability of acceptance.
"""

from dataclasses import dataclass
from typing import NamedTuple

import jax
import jax.numpy as jnp

from amagold.acceptance._acceptance_test import Acceptance, Decision
from amagold.acceptance._full_test import HOPELESS
from amagold.core import trees
from amagold.core.shapes import Flag, Position, RandomKey, Scalar
from amagold.data import Chunk
from amagold.energy._chunks import chunk_size_for
from amagold.energy._float64 import in_double, needs_double, wide_log_likelihoods
from amagold.energy._wide_sums import Wide, add_to, subtract, zero
from amagold.mode._reference import Reference, reference_of
from amagold.target import Posterior, Target, with_data


class DelayedMemory(NamedTuple):
    """What is remembered of a position."""

    log_prior: Scalar
    polynomial: Scalar  # T(theta), without the constant
    # over all data; zero for a proposal that the first stage rejected, which is never kept
    log_likelihood: Wide


@trees.record(static=("is_wide",))
class DelayedTest(Acceptance):
    """Exact, and looks at the data only where a surrogate accepts. `acceptance.delayed`
    makes it.
    """

    label = "exact"
    uses_work = True
    is_count_fixed = False  # how many examples a test looks at is in its decision

    reference: Reference
    is_wide: bool = False  # whether log likelihoods are evaluated in float64

    def draw(self, key: RandomKey) -> tuple[Scalar, Scalar]:
        """A uniform for each stage, as its logarithm."""
        first, second = jax.random.split(key)
        return -jax.random.exponential(first), -jax.random.exponential(second)

    def remember(self, target: Target, position: Position) -> DelayedMemory:
        posterior = _with_data(target)
        polynomial = self._polynomial(position)
        return DelayedMemory(
            posterior.log_prior(position),
            polynomial,
            self._total(posterior, position, jnp.bool_(True)),
        )

    def energy(self, memory: DelayedMemory) -> Scalar:
        return -memory.log_prior - (memory.log_likelihood.high + memory.log_likelihood.low)

    def decide(
        self,
        target: Target,
        draws: tuple[Scalar, Scalar],
        memory: DelayedMemory,
        proposed: Position,
        work: Scalar,
    ) -> Decision:
        posterior = _with_data(target)
        log_prior, polynomial = posterior.log_prior(proposed), self._polynomial(proposed)
        rise = polynomial - memory.polynomial
        # log a_1 = rho + [log prior - T](theta*) - [log prior - T](theta)
        first = work + log_prior - memory.log_prior - rise
        is_inside = target.is_inside(proposed)
        passes = is_inside & jnp.isfinite(first) & (draws[0] < first)
        log_likelihood = self._total(posterior, proposed, passes)
        # log a_2 = [sum_i log likelihood_i + T](theta*) - [same](theta)
        second = subtract(log_likelihood, memory.log_likelihood) + rise
        is_accepted = passes & jnp.isfinite(second) & (draws[1] < second)
        is_divergent = is_inside & ~((first > HOPELESS) & (~passes | (second > HOPELESS)))
        return Decision(
            is_accepted,
            jnp.where(passes, second, -jnp.inf),
            is_divergent,
            DelayedMemory(log_prior, polynomial, log_likelihood),
            jnp.where(passes, posterior.num_examples, 0),
        )

    def num_examples(self, target: Target) -> int:
        return _with_data(target).num_examples

    def _total(self, target: Posterior, position: Position, is_wanted: Flag) -> Wide:
        """sum_i log likelihood_i, summed in float64; a loop that does not turn where no chain asks
        for it.
        """

        def visit(total: Wide, chunk: Chunk, here: Position) -> Wide:
            with in_double(self.is_wide):
                evaluate = wide_log_likelihoods if self.is_wide else Posterior.log_likelihoods
                return add_to(total, chunk.only_new(evaluate(target, here, chunk.rows)))

        chunk_size = chunk_size_for(target, position)
        return target.examples.scan_if(is_wanted, visit, zero(), position, chunk_size)

    def _polynomial(self, position: Position) -> Scalar:
        return self.reference.taylor_energy(self.reference.away(position), self.reference.order)


@dataclass(frozen=True)
class Delayed:
    """Delayed acceptance, before it knows its target."""

    order: int
    center: Position | None

    def bind(self, target: Target, reference: Reference | None = None) -> DelayedTest:
        """The test for a target: passes over the data for the reference, unless the gradient has
        one of the same order.
        """
        target = _with_data(target)
        if (
            reference is None
            or self.center is not None
            or (reference.hessian is None) != (self.order == 1)
        ):
            reference = reference_of(target, self.center, self.order)
        return DelayedTest(reference, needs_double(target, reference.position))


def delayed(order: int = 2, center: trees.PyTree = None) -> Delayed:
    """Delayed acceptance: the exact test over all data, only for proposals that a Taylor polynomial
    of the energy accepts.

    Args:
      order: of the polynomial, 1 or 2. Without second derivatives, whose matrix is kept whole, it
        rarely follows the energy.
      center: the reference position, fixed for good. None takes that of the gradient's control
        variates, or the mode.
    """
    if order not in (1, 2):
        raise ValueError(
            f"order must be 1 or 2, got {order!r}; without a polynomial it is acceptance.full()"
        )
    return Delayed(int(order), None if center is None else trees.as_position(center))


def _with_data(target: Target) -> Posterior:
    return with_data(target, "acceptance.delayed", "use acceptance.full()")
