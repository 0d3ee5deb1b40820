"""The ways to sample that a plan chooses from."""

from collections.abc import Iterator

from amagold.planning._candidate import Candidate
from amagold.planning._option_registry import GRADIENTS, TESTS, TRAJECTORIES
from amagold.planning._plan_inputs import PlanInputs

CLOSE = 0.97  # a candidate must be this much cheaper to be preferred over an earlier, simpler one


def every_candidate(inputs: PlanInputs, fewest_steps: int = 1) -> Iterator[Candidate]:
    """Every gradient with every test and trajectory that it goes with, in order of simplicity.

    Args:
      inputs: the curvature, noise and costs under one mass.
      fewest_steps: of a trajectory with the full gradient.
    """
    for gradient in GRADIENTS.values():
        tests = [TESTS[name] for name in gradient.tests if TESTS[name].is_open(inputs)]
        for trial in gradient.trials(inputs, fewest_steps):
            for test in tests:
                for name in trial.trajectories:
                    found = TRAJECTORIES[name].predict(inputs, gradient, test, trial)
                    if found is not None:
                        yield found


def best_of(candidates: list[Candidate]) -> Candidate:
    """The cheapest effective draw; the earlier one where the difference is within what predictions
    can tell.
    """
    best = candidates[0]
    for candidate in candidates[1:]:
        if candidate.cost_per_draw < CLOSE * best.cost_per_draw:
            best = candidate
    return best


def best_of_each_kind(candidates: list[Candidate]) -> list[Candidate]:
    """The best with the full gradient, with each batch plan, and with control variates of each
    order and each test; the cheapest first.
    """

    def kind_of(candidate: Candidate) -> tuple[str, str | None, int | None, str]:
        return candidate.gradient, candidate.batch_plan, candidate.order, candidate.test

    kinds = dict.fromkeys(map(kind_of, candidates))
    chosen = [
        best_of([candidate for candidate in candidates if kind_of(candidate) == kind])
        for kind in kinds
    ]
    return sorted(chosen, key=lambda candidate: candidate.cost_per_draw)
