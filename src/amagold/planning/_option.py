"""What an option offers to the plan: what it would bring and cost, how it is built, and its words.

A gradient, a trajectory and a test make one way to sample. Each option is a file of its own; a new
one joins the plan by its line in `_option_registry.py`.
"""

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

from amagold.acceptance import Acceptance, UnboundTest
from amagold.core import trees
from amagold.gradients import GradientEstimator
from amagold.planning._at_mode import AtMode
from amagold.planning._candidate import Candidate
from amagold.planning._non_gaussianity import NonGaussianity
from amagold.planning._plan_inputs import Batching, PlanInputs, Trial
from amagold.samplers import Sampler
from amagold.target import Target


class GradientOption(Protocol):
    """How the gradient is estimated."""

    name: str
    tests: tuple[str, ...]  # by name, that it is tried with
    # acceptance of a quarter turn: with less, more steps of a smaller angle are the safer choice
    lowest_turn: float = 0.75

    def trials(self, inputs: PlanInputs, fewest_steps: int) -> Iterator[Trial]:
        """What is worth judging, the simplest first."""
        ...

    def cost(self, inputs: PlanInputs, trial: Trial) -> float:
        """Of a transition's gradients, in evaluations of one example's log likelihood."""
        ...

    def turn_variance(self, rest: NonGaussianity, num_steps: int) -> float:
        """Of log a after a quarter turn in so many steps, but for minibatches."""
        return rest.variance(num_steps)

    def rare_examples(self, inputs: PlanInputs) -> int:
        """That it looks at every time."""
        return 0

    def lowest_acceptance(self, batching: Batching | None, share: float) -> float:
        """What a step size must leave; `share` is the gradients' part of a transition's cost."""
        ...

    def build(self, plan: Any, at_mode: AtMode) -> GradientEstimator | None: ...

    def examples_seen(self, plan: Any) -> int:
        """By one gradient."""
        return plan.batch_size or 0

    def words(self, plan: Any) -> str: ...

    def short_words(self, kind: dict[str, Any]) -> str:
        """For a plan that mentions it as second best."""
        ...


class TestOption(Protocol):
    """How the end of a trajectory is tested."""

    __test__ = False  # no test of pytest's

    name: str

    def is_open(self, inputs: PlanInputs) -> bool: ...

    def variance(self, inputs: PlanInputs) -> float:
        """What the test itself adds to the variance of log a."""
        ...

    def cost(self, inputs: PlanInputs, batching: Batching | None) -> tuple[float, float]:
        """Of one test, and the examples that it is expected to look at."""
        ...

    def build(
        self, plan: Any, target: Target, at_mode: AtMode
    ) -> Acceptance | UnboundTest | None: ...

    def words(self, plan: Any) -> str:
        """What it looks at."""
        ...

    def cost_words(self, plan: Any, seen: int, draws: str) -> str: ...


class TrajectoryOption(Protocol):
    """How a proposal moves."""

    name: str
    source: str  # what the log ratio varies by, beside minibatches

    def predict(
        self, inputs: PlanInputs, gradient: GradientOption, test: TestOption, trial: Trial
    ) -> Candidate | None:
        """With its best step size; None where it is not to be recommended."""
        ...

    def build(
        self,
        plan: Any,
        target: Target,
        mass: trees.PyTree,
        gradient: GradientEstimator | None,
        test: Acceptance | UnboundTest | None,
        at_mode: AtMode,
    ) -> Sampler: ...

    def words(self, plan: Any) -> str: ...


class Spending(NamedTuple):
    """Of one transition."""

    gradients: float
    testing: float
    examples: float  # that the test looks at

    @property
    def total(self) -> float:
        return self.gradients + self.testing

    @property
    def share(self) -> float:
        """Of the gradients."""
        return self.gradients / self.total


def spending(
    inputs: PlanInputs, gradient: GradientOption, test: TestOption, trial: Trial
) -> Spending:
    return Spending(gradient.cost(inputs, trial), *test.cost(inputs, trial.batching))


def candidate(
    inputs: PlanInputs,
    gradient: GradientOption,
    test: TestOption,
    trial: Trial,
    spent: Spending,
    **figures: Any,
) -> Candidate:
    """One way to sample with its figures."""
    batching = trial.batching
    return Candidate(
        gradient=gradient.name,
        batch_plan=None if batching is None else batching.plan,
        batch_size=None if batching is None else batching.size,
        order=None if batching is None else batching.order,
        mass=inputs.mass,
        num_steps=trial.num_steps,
        test=test.name,
        test_examples=spent.examples,
        rare_examples=gradient.rare_examples(inputs),
        gradient_share=spent.share,
        cost_per_transition=spent.total,
        **figures,
    )


def count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def examples(number: float) -> str:
    return "less than one example" if number < 1.0 else f"about {number:.3g} examples"
