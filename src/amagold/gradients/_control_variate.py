"""The gradient from a few examples' differences to a reference, whose sums over all data are known.

    grad U~(theta) = -grad log prior + T'(theta) + (N / B) sum over the batch of [grad U_i(theta) -
    T_i'(theta)]

where T_i is the Taylor polynomial of U_i = -log likelihood_i about the reference, and T the sum of
all of them. Near the reference the bracket is small: at the scale of the posterior V^2 is of order
N d / B without, d^2 / B with order 1, and d^3 / (N B) with order 2.
"""

import dataclasses

import jax
from jax import Array

from amagold.batches import BatchPlan, plan_by_name
from amagold.batches._batch_plans import External
from amagold.core import checks, trees
from amagold.core.array_types import Int
from amagold.core.shapes import Batches, Position, RandomKey, Rows
from amagold.gradients._gradient_estimator import GradientEstimator
from amagold.gradients._minibatch import Minibatch, RowNumbers
from amagold.mode._reference import Reference, reference_of
from amagold.target import Target


@trees.record(static=("batch_size", "plan", "order"))
class ControlVariate(GradientEstimator):
    """Unbiased at every position, and exact under a test, because the reference never moves."""

    batch_size: int
    plan: BatchPlan
    order: int
    center: Position | None = None  # where the reference will be taken; None: at the mode
    reference: Reference | None = None

    @property
    def keeps_exactness(self) -> bool:
        return self.plan.is_reversal_invariant

    @property
    def rows(self) -> Minibatch:
        """Which examples a trajectory sees is the plain minibatch's business."""
        return Minibatch(self.batch_size, self.plan)

    def check(self, target: Target, num_steps: int) -> None:
        self.rows.check(target, num_steps)

    def bind(self, target: Target) -> "ControlVariate":
        """The same with its reference: a pass over the data (two for order 2), and the search for
        the mode if no center was given.
        """
        if self.reference is not None:
            return self
        return dataclasses.replace(
            self, reference=reference_of(target, self.center, self.order), center=None
        )

    def known_reference(self) -> Reference | None:
        return self.reference

    def batching(self) -> tuple[int, BatchPlan]:
        return self.batch_size, self.plan

    def draw(self, key: RandomKey, target: Target, num_steps: int) -> RowNumbers:
        return self.rows.draw(key, target, num_steps)

    def gather(self, target: Target, draws: Int[Array, "... rows"]) -> Rows | Batches:
        return self.rows.gather(target, draws)

    def estimate(
        self, target: Target, position: Position, rows: Rows, noise: tuple[()]
    ) -> Position:
        reference = self.reference
        assert reference is not None
        away = reference.away(position)
        scale = target.num_examples / self.batch_size

        def gradient(at: Position) -> Position:
            return jax.grad(lambda at: -target.log_likelihoods(at, rows).sum())(at)

        here = gradient(position)
        if self.order == 1:
            there = gradient(reference.position)
        else:
            # T_i' = grad U_i(reference) + H_i (theta - reference)
            step = trees.unflatten_like(away, position)
            there = trees.add(*jax.jvp(gradient, (reference.position,), (step,)))
        known = trees.unflatten_like(reference.taylor_gradient(away, self.order), position)
        prior = jax.grad(target.log_prior)(position)
        return jax.tree.map(
            lambda sure, own, now, then: sure - own + scale * (now - then),
            known,
            prior,
            here,
            there,
        )

    def num_examples(self, target: Target) -> int:
        return self.batch_size


def control_variate(
    batch_size: int, order: int = 2, center: trees.PyTree = None, plan: str | BatchPlan = "iid"
) -> ControlVariate:
    """The gradient from `batch_size` examples a step, as differences to a reference.

    Args:
      batch_size: examples per step.
      order: 1 compares gradients with those at the center; 2 also uses the second derivatives
        there, whose matrix is kept whole.
      center: the reference position, fixed for good. None searches the mode from the target's
        `init`.
      plan: as in `minibatch`; independent batches do well, because there is little noise left to
        cancel.
    """
    checks.whole_number(
        "batch_size", batch_size, at_least=1, remedy="give the number of examples per gradient"
    )
    if order not in (1, 2):
        raise ValueError(
            f"order must be 1 or 2, got {order!r}; without control variates it is "
            "gradients.minibatch"
        )
    chosen = plan_by_name(plan)
    if isinstance(chosen, External):
        raise ValueError(
            "plan must not be 'external' with control variates, whose sums over all data need the "
            "data here; use 'iid'"
        )
    return ControlVariate(
        int(batch_size), chosen, int(order), None if center is None else trees.as_position(center)
    )
