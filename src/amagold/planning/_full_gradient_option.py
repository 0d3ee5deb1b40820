"""The gradient over all examples at every step."""

from collections.abc import Iterator
from typing import Any

from amagold.planning._at_mode import AtMode
from amagold.planning._conditional_option import CONDITIONAL, KICKS
from amagold.planning._costs import GRADIENT
from amagold.planning._lengths import TURNS, trajectory_lengths
from amagold.planning._option import GradientOption
from amagold.planning._plan_inputs import Batching, PlanInputs, Trial

# HMC's efficiency is flat from 0.65 to 0.9; the upper half forgives curvature that varies
FULL_BATCH_ACCEPTANCE = 0.8


class FullGradientOption(GradientOption):
    name = "full"
    tests = ("full",)

    def trials(self, inputs: PlanInputs, fewest_steps: int) -> Iterator[Trial]:
        for num_steps in trajectory_lengths():
            if num_steps >= fewest_steps:
                yield Trial(num_steps)
        for num_steps in TURNS:
            yield Trial(num_steps, trajectories=("rotation",))

    def cost(self, inputs: PlanInputs, trial: Trial) -> float:
        costs = inputs.costs
        return trial.num_steps * (GRADIENT * costs.num_examples + costs.step(inputs.mass))

    def lowest_acceptance(self, batching: Batching | None, share: float) -> float:
        return FULL_BATCH_ACCEPTANCE

    def build(self, plan: Any, at_mode: AtMode) -> None:
        return None

    def examples_seen(self, plan: Any) -> int:
        # of a round, where one is more than a gradient
        return plan.num_examples * (KICKS if plan.integrator == CONDITIONAL else 1)

    def words(self, plan: Any) -> str:
        over = f"all {plan.num_examples} examples" if plan.num_examples else "the whole density"
        return f"Gradient: over {over} at every step, without noise."

    def short_words(self, kind: dict[str, Any]) -> str:
        return "the full gradient"
