"""Gradients from minibatches, whose noise the test pays for."""

import math
from collections.abc import Iterator
from typing import Any

from amagold.gradients import GradientEstimator, minibatch
from amagold.planning._at_mode import AtMode
from amagold.planning._best_acceptance import best_acceptance
from amagold.planning._costs import GRADIENT
from amagold.planning._lengths import MAX_STEPS
from amagold.planning._option import GradientOption
from amagold.planning._plan_inputs import Batching, PlanInputs, Trial

SMALLEST_BATCH = 16  # below this a step is mostly overhead
LOWEST_ACCEPTANCE = 0.5  # with less an adaptation has little to go by
ORDERS = {
    "epoch": "one pass over a fresh shuffle of the data, so that the batches' errors cancel",
    "palindrome": "a pass over a fresh shuffle of the data and back, so that the batches' errors "
    "cancel",
    "iid": "each drawn independently",
}
NAMES = {
    "epoch": "minibatches, one shuffled pass",
    "palindrome": "minibatches, there and back",
    "iid": "independent minibatches",
}


class MinibatchOption(GradientOption):
    name = "minibatch"
    tests = ("full",)

    def trials(self, inputs: PlanInputs, fewest_steps: int) -> Iterator[Trial]:
        if inputs.noise is None:
            return
        num_examples = inputs.costs.num_examples
        for batch_size in _batch_sizes(num_examples):
            per_epoch = num_examples // batch_size
            if per_epoch <= MAX_STEPS:
                yield Trial(per_epoch, Batching("epoch", batch_size))
            if 2 * per_epoch <= MAX_STEPS:
                yield Trial(2 * per_epoch, Batching("palindrome", batch_size))
        # with independent batches the data per trajectory, T B, decides: one batch size per
        # doubling of T will do
        for batch_size in _batch_sizes(num_examples)[::3]:
            for num_steps in [2**power for power in range(0, int(math.log2(MAX_STEPS)) + 1)]:
                if num_steps * batch_size <= 16 * num_examples:
                    # turns of many steps too: here steps are many for the noise's sake
                    yield Trial(num_steps, Batching("iid", batch_size), ("leapfrog", "rotation"))

    def cost(self, inputs: PlanInputs, trial: Trial) -> float:
        assert trial.batching is not None
        costs = inputs.costs
        per_example = GRADIENT + costs.fetch
        return trial.num_steps * (per_example * trial.batching.size + costs.step(inputs.mass))

    def lowest_acceptance(self, batching: Batching | None, share: float) -> float:
        if batching is None or batching.plan != "iid":
            return LOWEST_ACCEPTANCE
        # independent noise lets T and the step size trade at a fixed trajectory length, which is
        # what this rule is for
        return max(LOWEST_ACCEPTANCE, best_acceptance(share))

    def build(self, plan: Any, at_mode: AtMode) -> GradientEstimator:
        return minibatch(plan.batch_size, plan.batch_plan)

    def words(self, plan: Any) -> str:
        return (
            f"Gradient: minibatches of {plan.batch_size} examples, {plan.num_steps} per proposal, "
            f"{ORDERS[plan.batch_plan]}; noise V^2 = {plan.gradient_variance:.3g}."
        )

    def short_words(self, kind: dict[str, Any]) -> str:
        return NAMES[kind["batch_plan"]]


def _batch_sizes(num_examples: int) -> list[int]:
    """Powers of two from 16 to half the data."""
    return [
        2**power
        for power in range(int(math.log2(SMALLEST_BATCH)), 31)
        if 2**power <= num_examples // 2
    ]
