"""A quarter turn of the Gaussian at the mode, which makes independent draws of it: for posteriors
that are nearly Gaussian.
"""

import math
from typing import Any

import numpy as np

from amagold.acceptance import Acceptance, UnboundTest
from amagold.core import trees
from amagold.gradients import GradientEstimator
from amagold.mode._mode_search import find_mode
from amagold.planning._at_mode import AtMode
from amagold.planning._candidate import Candidate
from amagold.planning._discretisation import acceptance_from
from amagold.planning._gradient_noise import noise_variance
from amagold.planning._option import (
    GradientOption,
    TestOption,
    TrajectoryOption,
    candidate,
    spending,
)
from amagold.planning._plan_inputs import PlanInputs, Trial
from amagold.samplers import Sampler, amortized
from amagold.target import Target
from amagold.trajectory import Rotation
from amagold.trajectory._mass_matrix import as_mass

LOWEST_ACCEPTANCE = 0.6  # of the warm-up: with less it shortens the turn
QUARTER = 0.5 * math.pi


class QuarterTurnOption(TrajectoryOption):
    name = "rotation"
    source = "what is not Gaussian"

    def predict(
        self, inputs: PlanInputs, gradient: GradientOption, test: TestOption, trial: Trial
    ) -> Candidate | None:
        """None too where the posterior is no Gaussian, or too few proposals would be accepted."""
        if inputs.non_gaussianity is None:
            return None
        step_size = QUARTER / trial.num_steps
        batching, of_one, noise = trial.batching, inputs.noise_of(trial.batching), 0.0
        if batching is not None and of_one is not None:
            steps, num_examples = np.array([step_size]), inputs.costs.num_examples
            plan, size = batching.plan, batching.size
            noise = float(
                noise_variance(
                    of_one, inputs.spectrum, steps, trial.num_steps, 0.0, plan, size, num_examples
                )[0]
            )
        discretisation = gradient.turn_variance(inputs.non_gaussianity, trial.num_steps)
        acceptance = float(acceptance_from(noise + discretisation + test.variance(inputs)))
        if acceptance < gradient.lowest_turn:
            return None
        return candidate(
            inputs,
            gradient,
            test,
            trial,
            spending(inputs, gradient, test, trial),
            integrator=self.name,
            step_size=step_size,
            acceptance=acceptance,
            noise_variance=noise,
            discretisation_variance=discretisation,
            # a proposal that is independent of where it came from leaves the autocorrelation 1 - A
            ess_per_transition=acceptance / (2.0 - acceptance),
        )

    def build(
        self,
        plan: Any,
        target: Target,
        mass: trees.PyTree,
        gradient: GradientEstimator | None,
        test: Acceptance | UnboundTest | None,
        at_mode: AtMode,
    ) -> Sampler:
        center = at_mode.position
        if center is None:
            center = find_mode(target, target.init).position
        proposal = Rotation(plan.step_size, as_mass(mass), center)
        return amortized(target, proposal, plan.num_steps, gradient, test)

    def words(self, plan: Any) -> str:
        steps = "one step" if plan.num_steps == 1 else f"{plan.num_steps} steps"
        kicks = "; the gradient adds what the posterior differs by"
        return (
            f"Steps: a quarter turn about the mode in {steps} per proposal, as the Gaussian with "
            f"the curvature there moves{'' if plan.gradient == 'expansion' else kicks}. Warm-up "
            f"shortens the turn only where less than {plan.target_acceptance:.0%} is accepted; the "
            "mass is the curvature at the mode."
        )
