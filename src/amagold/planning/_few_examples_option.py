"""The exact test on a few examples, for models that know their bounds."""

from typing import Any

from amagold.acceptance import Acceptance, UnboundTest, tuna
from amagold.mode._derivatives import has_sparse_rows
from amagold.mode._mode_search import bounds_about
from amagold.mode._row_bounds import TaylorBound
from amagold.planning._at_mode import AtMode
from amagold.planning._costs import DIFFERENCE, LOOP_OPERATIONS, REMAINDER_OPERATIONS
from amagold.planning._option import TestOption, examples
from amagold.planning._plan_inputs import Batching, PlanInputs
from amagold.target import Posterior, Target


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
        return operations + DIFFERENCE * number + inputs.few.rare, number + inputs.few.rare

    def build(self, plan: Any, target: Target, at_mode: AtMode) -> Acceptance | UnboundTest:
        reference, norm, bounds = at_mode.reference, at_mode.norm, target.bounds
        if at_mode.test is not None:
            return at_mode.test
        if reference is not None and isinstance(target, Posterior) and has_sparse_rows(target):
            return tuna().bind(target, reference)
        if reference is None or norm is None or bounds is None:
            return tuna(center=None if reference is None else reference.position)
        assert isinstance(target, Posterior)
        bound = TaylorBound(bounds, 2, reference.position, norm)
        return tuna().bind(target, reference, bounds_about(target, bound))

    def words(self, plan: Any) -> str:
        return f"on {examples(plan.test_examples)}, drawn by how much they can matter,"

    def cost_words(self, plan: Any, seen: int, draws: str) -> str:
        gradients = f"gradients see {seen} examples" if seen else "gradients read nothing"
        return (
            f"Cost: a transition's {gradients} and its test {examples(plan.test_examples)}, "
            f"however many there are in all; {draws}."
        )
