"""The gradient of the expansion about the mode, which reads no examples: where what it leaves out
is less than a minibatch's noise.
"""

from collections.abc import Iterator
from typing import Any

from amagold.gradients import Expansion, GradientEstimator, expansion
from amagold.planning._at_mode import AtMode
from amagold.planning._costs import MATRIX_OPERATIONS
from amagold.planning._full_gradient_option import FULL_BATCH_ACCEPTANCE
from amagold.planning._non_gaussianity import NonGaussianity
from amagold.planning._option import GradientOption
from amagold.planning._plan_inputs import Batching, PlanInputs, Trial


class ExpansionOption(GradientOption):
    name = "expansion"
    lowest_turn = 0.4  # a test of all data would cost more than such rejections do
    tests = ("tuna",)  # a test of all data makes rows for a gradient cheap

    def trials(self, inputs: PlanInputs, fewest_steps: int) -> Iterator[Trial]:
        if inputs.few is not None:
            # it is the Gaussian that a turn follows anyway, so that one step is as good as many
            yield Trial(1, trajectories=("rotation",))

    def cost(self, inputs: PlanInputs, trial: Trial) -> float:
        costs = inputs.costs
        square = MATRIX_OPERATIONS * costs.num_parameters**2 / costs.operations
        return trial.num_steps * (costs.step(inputs.mass) + square)

    def turn_variance(self, rest: NonGaussianity, num_steps: int) -> float:
        return rest.whole_variance

    def lowest_acceptance(self, batching: Batching | None, share: float) -> float:
        return FULL_BATCH_ACCEPTANCE

    def build(self, plan: Any, at_mode: AtMode) -> GradientEstimator:
        if at_mode.reference is None:
            return expansion()
        return Expansion(reference=at_mode.reference, tilt=at_mode.tilt)

    def words(self, plan: Any) -> str:
        return (
            "Gradient: of the second-order expansion of all data about the mode, which reads no "
            "examples; the test pays for what it leaves out."
        )

    def short_words(self, kind: dict[str, Any]) -> str:
        return "the expansion about the mode"
