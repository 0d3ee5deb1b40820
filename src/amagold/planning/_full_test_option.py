"""The exact test over all data."""

from typing import Any

from amagold.acceptance import FullTest, full
from amagold.planning._at_mode import AtMode
from amagold.planning._costs import SHUFFLE_OPERATIONS, TEST_OPERATIONS
from amagold.planning._option import TestOption
from amagold.planning._plan_inputs import Batching, PlanInputs
from amagold.target import Target

TEST_VALUES = 2**18  # of one chunk of examples times chains: what the processor's cache holds
# of all chains' remembered values, above which a total is remembered instead
BYTES_PER_EXAMPLE = 64


class FullTestOption(TestOption):
    name = "full"

    def is_open(self, inputs: PlanInputs) -> bool:
        return True

    def variance(self, inputs: PlanInputs) -> float:
        return 0.0

    def cost(self, inputs: PlanInputs, batching: Batching | None) -> tuple[float, float]:
        """With the shuffle that the batch plan needs."""
        costs = inputs.costs
        is_shuffled = batching is not None and batching.plan in ("epoch", "palindrome")
        shuffle = SHUFFLE_OPERATIONS if is_shuffled else 0.0
        per_example = 1.0 + (TEST_OPERATIONS + shuffle) / costs.operations
        return costs.num_examples * per_example, float(costs.num_examples)

    def build(self, plan: Any, target: Target, at_mode: AtMode) -> FullTest:
        if plan.order is None:
            return full()
        # all chains' values of an example are looked at together, a cache-full at a time
        chunk_size = max(1, min(target.num_examples, TEST_VALUES // plan.num_chains))
        keep = "total" if plan.num_chains * 4 > BYTES_PER_EXAMPLE else "auto"
        return full(keep=keep, chunk_size=chunk_size)

    def words(self, plan: Any) -> str:
        return "over all data" if plan.num_examples else "of the density"

    def cost_words(self, plan: Any, seen: int, draws: str) -> str:
        if not plan.num_examples:
            return (
                f"Cost: a transition evaluates {plan.num_steps} gradients of the density and the "
                f"density once; {draws}."
            )
        passes = seen / plan.num_examples
        return (
            f"Cost: a transition's gradients see {seen} examples ({passes:.3g} passes over the "
            f"data), its test {plan.num_examples} (1 pass); gradients take "
            f"{plan.gradient_share:.0%} of the work; {draws}, so that costs "
            f"{passes / plan.ess_per_transition:.3g} passes of gradients and "
            f"{1.0 / plan.ess_per_transition:.3g} of tests."
        )
