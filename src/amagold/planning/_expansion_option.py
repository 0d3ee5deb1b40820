"""The gradient of the expansion about the mode, which reads no examples: where what it leaves out
is less than a minibatch's noise.
"""

from collections.abc import Iterator
from typing import Any

from amagold.gradients import Expansion, GradientEstimator, expansion
from amagold.planning._at_mode import AtMode
from amagold.planning._costs import GRADIENT, MATRIX_OPERATIONS
from amagold.planning._full_gradient_option import FULL_BATCH_ACCEPTANCE
from amagold.planning._non_gaussianity import NonGaussianity
from amagold.planning._option import GradientOption
from amagold.planning._plan_inputs import Batching, PlanInputs, Trial

STEPS = (2, 3, 4, 6)  # of a turn that rare rows kick


class ExpansionOption(GradientOption):
    name = "expansion"
    lowest_turn = 0.4  # a test of all data would cost more than such rejections do
    tests = ("tuna",)  # a test of all data makes rows for a gradient cheap

    def trials(self, inputs: PlanInputs, fewest_steps: int) -> Iterator[Trial]:
        if inputs.few is None:
            return
        # it is the Gaussian that a turn follows anyway, so that one step is as good as many, but
        # for the kicks of rare rows
        for number in STEPS if inputs.few.rare else (1,):
            yield Trial(number, trajectories=("rotation",))

    def cost(self, inputs: PlanInputs, trial: Trial) -> float:
        costs = inputs.costs
        # one product with the Hessian, where a mass has three
        square = MATRIX_OPERATIONS / 3.0 * costs.num_parameters**2 / costs.operations
        rare = GRADIENT * self.rare_examples(inputs)
        return trial.num_steps * (costs.step(inputs.mass) + square + rare)

    def rare_examples(self, inputs: PlanInputs) -> int:
        return 0 if inputs.few is None else inputs.few.rare

    def examples_seen(self, plan: Any) -> int:
        return plan.rare_examples

    def turn_variance(self, rest: NonGaussianity, num_steps: int) -> float:
        return rest.whole_variance + rest.rare_variance(num_steps)

    def lowest_acceptance(self, batching: Batching | None, share: float) -> float:
        return FULL_BATCH_ACCEPTANCE

    def build(self, plan: Any, at_mode: AtMode) -> GradientEstimator:
        if at_mode.reference is None:
            return expansion()
        return Expansion(reference=at_mode.reference, tilt=at_mode.tilt, rare=at_mode.rare)

    def words(self, plan: Any) -> str:
        rare = (
            f"reads no examples but the {plan.rare_examples:,} of rare levels"
            if plan.rare_examples
            else "reads no examples"
        )
        return (
            f"Gradient: of the second-order expansion of all data about the mode, which {rare}; "
            "the test pays for what it leaves out."
        )

    def short_words(self, kind: dict[str, Any]) -> str:
        return "the expansion about the mode"
