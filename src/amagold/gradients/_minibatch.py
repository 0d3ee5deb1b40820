"""The gradient from a few examples, scaled up to all of them."""

import jax
import jax.numpy as jnp
from jax import Array

from amagold.batches import BatchPlan, plan_by_name
from amagold.batches._batch_plans import External
from amagold.core import checks, trees
from amagold.core.array_types import Int
from amagold.core.shapes import Batches, Flag, Position, RandomKey, Rows, Scalar
from amagold.gradients._gradient_estimator import GradientEstimator
from amagold.target import Posterior, Target, with_data

# the numbers of the examples that each step sees
RowNumbers = Int[Array, "{num_steps} {self.batch_size}"]


@trees.record(static=("batch_size", "plan"))
class Minibatch(GradientEstimator):
    """grad U~(theta) = -grad log prior - (N / B) sum over the batch of grad log likelihood_i."""

    batch_size: int
    plan: BatchPlan

    @property
    def keeps_exactness(self) -> bool:
        return self.plan.is_reversal_invariant

    @property
    def is_external(self) -> bool:
        return isinstance(self.plan, External)

    def check(self, target: Target, num_steps: int) -> None:
        target = _with_data(target)
        if self.batch_size > target.num_examples:
            raise ValueError(
                f"batch_size must be between 1 and the {target.num_examples} examples, got "
                f"{self.batch_size}; "
                "lower it, or use gradients.full()"
            )
        self.plan.check(num_steps, self.batch_size, target.num_examples)

    def draw(self, key: RandomKey, target: Target, num_steps: int) -> RowNumbers | Flag:
        return self.plan.draw(key, num_steps, self.batch_size, _with_data(target).num_examples)

    def gather(self, target: Target, draws: Int[Array, "... rows"]) -> Rows | Batches:
        return _with_data(target).examples.rows(draws)

    def batching(self) -> tuple[int, BatchPlan]:
        return self.batch_size, self.plan

    def arrange(self, coin: Flag, batches: Batches) -> Batches:
        """An outside loader's T batches, reversed when the fair coin says so."""
        return jax.tree.map(lambda leaf: jnp.where(coin, leaf[::-1], leaf), batches)

    def estimate(
        self, target: Target, position: Position, rows: Rows, noise: tuple[()]
    ) -> Position:
        posterior = _with_data(target)
        scale = posterior.num_examples / self.batch_size

        def energy(at: Position) -> Scalar:
            return -posterior.log_prior(at) - scale * posterior.log_likelihoods(at, rows).sum()

        return jax.grad(energy)(position)

    def num_examples(self, target: Target) -> int:
        return self.batch_size


def minibatch(batch_size: int, plan: str | BatchPlan = "iid") -> Minibatch:
    """The gradient from `batch_size` examples a step.

    Args:
      batch_size: examples per step.
      plan: "iid", "epoch" (a fresh shuffle per trajectory), "palindrome" (there and back),
        "external" (an outside loader's batches, reversed by a fair coin), or an object like those
        in `amagold.batches`.
    """
    checks.whole_number(
        "batch_size", batch_size, at_least=1, remedy="give the number of examples per gradient"
    )
    return Minibatch(int(batch_size), plan_by_name(plan))


def _with_data(target: Target) -> Posterior:
    return with_data(target, "batch_size", "use gradients.full() or .noisy()")
