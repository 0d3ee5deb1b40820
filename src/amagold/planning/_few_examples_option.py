"""The exact test on a few examples, for models that know their bounds."""

from typing import Any

from amagold.acceptance import Acceptance, UnboundTest, tuna
from amagold.planning._at_mode import AtMode
from amagold.planning._costs import DIFFERENCE, LOOP_OPERATIONS, REMAINDER_OPERATIONS
from amagold.planning._option import TestOption, examples
from amagold.planning._plan_inputs import Batching, PlanInputs
from amagold.target import Target


class FewExamplesOption(TestOption):
    name = "tuna"

    def is_open(self, inputs: PlanInputs) -> bool:
        return inputs.few is not None

    def variance(self, inputs: PlanInputs) -> float:
        assert inputs.few is not None
        return inputs.few.variance

    def cost(self, inputs: PlanInputs, batching: Batching | None) -> tuple[float, float]:
        assert inputs.few is not None
        costs, number = inputs.costs, inputs.few.examples
        fetch = costs.fetch * costs.operations + REMAINDER_OPERATIONS
        operations = (LOOP_OPERATIONS + fetch * number) / costs.operations
        return operations + DIFFERENCE * number, number

    def build(self, plan: Any, target: Target, at_mode: AtMode) -> Acceptance | UnboundTest:
        reference = at_mode.reference
        return at_mode.test or tuna(center=None if reference is None else reference.position)

    def words(self, plan: Any) -> str:
        return f"on {examples(plan.test_examples)}, drawn by how much they can matter,"

    def cost_words(self, plan: Any, seen: int, draws: str) -> str:
        return (
            f"Cost: a transition's gradients see {seen} examples and its test "
            f"{examples(plan.test_examples)}, however many there are in all; {draws}."
        )
