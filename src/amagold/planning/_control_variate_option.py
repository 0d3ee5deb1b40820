"""Gradients from a few examples, as differences to expansions about the mode."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from amagold.gradients import GradientEstimator, control_variate
from amagold.planning._at_mode import AtMode
from amagold.planning._costs import DIFFERENCE, MATRIX_OPERATIONS
from amagold.planning._full_gradient_option import FULL_BATCH_ACCEPTANCE
from amagold.planning._lengths import TURNS, trajectory_lengths
from amagold.planning._option import GradientOption
from amagold.planning._plan_inputs import Batching, PlanInputs, Trial

BATCH_SIZES = (2, 8, 32, 128, 512)
LONGEST = 16  # steps
DIFFERENCES = {1: "their gradients at the mode", 2: "their second-order expansions about the mode"}


class ControlVariateOption(GradientOption):
    name = "control variate"
    tests = ("full", "tuna")

    def trials(self, inputs: PlanInputs, fewest_steps: int) -> Iterator[Trial]:
        for order in inputs.controlled:
            for batch_size in BATCH_SIZES:
                for num_steps in (each for each in trajectory_lengths() if each <= LONGEST):
                    if batch_size < inputs.costs.num_examples // 2:
                        turns = ("rotation",) if num_steps in TURNS else ()
                        batching = Batching("iid", batch_size, order)
                        yield Trial(num_steps, batching, ("leapfrog", *turns))

    def cost(self, inputs: PlanInputs, trial: Trial) -> float:
        assert trial.batching is not None
        costs = inputs.costs
        square = MATRIX_OPERATIONS * costs.num_parameters**2 / costs.operations
        matrix = square if trial.batching.order == 2 else 0.0
        per_example = DIFFERENCE + costs.fetch
        step = per_example * trial.batching.size + costs.step(inputs.mass) + matrix
        return trial.num_steps * step

    def lowest_acceptance(self, batching: Batching | None, share: float) -> float:
        # the step's size is what limits, as with the full gradient
        return FULL_BATCH_ACCEPTANCE

    def build(self, plan: Any, at_mode: AtMode) -> GradientEstimator:
        estimator = control_variate(plan.batch_size, plan.order, plan=plan.batch_plan)
        if at_mode.reference is None:
            return estimator
        return replace(estimator, reference=at_mode.reference)

    def words(self, plan: Any) -> str:
        return (
            f"Gradient: minibatches of {plan.batch_size} examples, {plan.num_steps} per proposal, "
            f"as differences to {DIFFERENCES[plan.order]}, whose sum over all data is known "
            f"(control variates); noise V^2 = {plan.gradient_variance:.3g}."
        )

    def short_words(self, kind: dict[str, Any]) -> str:
        return "differences to the mode"
