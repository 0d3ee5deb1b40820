"""A way to sample posteriors that are nearly Gaussian: a quarter turn of the Gaussian, which makes
independent draws of it.
"""

import math

import numpy as np

from amagold.planning._candidate import Candidate, Setting, kind_of_gradient
from amagold.planning._discretisation import acceptance_from
from amagold.planning._gradient_noise import noise_variance

LOWEST_PREDICTED = 0.75  # acceptance: with less, more steps of a smaller angle are the safer choice
LOWEST_ACCEPTANCE = 0.6  # of the warm-up: with less it shortens the turn
QUARTER = 0.5 * math.pi


def quarter_turn(
    setting: Setting,
    num_steps: int,
    batch_plan: str | None = None,
    batch_size: int | None = None,
    order: int | None = None,
    test: str = "full",
) -> Candidate | None:
    """The candidate that crosses a quarter turn in T steps; None where too few of its proposals
    would be accepted.
    """
    assert setting.rest is not None
    step_size = QUARTER / num_steps
    noise = 0.0
    if batch_plan is not None and batch_size is not None:
        of_one = setting.noise if order is None else setting.controlled[order]
        assert of_one is not None
        steps = np.array([step_size])
        noise = float(
            noise_variance(
                of_one,
                setting.spectrum,
                steps,
                num_steps,
                0.0,
                batch_plan,
                batch_size,
                setting.costs.num_examples,
            )[0]
        )
    drawn = setting.few.variance if test == "tuna" and setting.few is not None else 0.0
    discretisation = setting.rest.variance(num_steps)
    acceptance = float(acceptance_from(noise + discretisation + drawn))
    if acceptance < LOWEST_PREDICTED:
        return None
    gradients, testing, examples = setting.costs_of(num_steps, batch_plan, batch_size, order, test)
    return Candidate(
        gradient=kind_of_gradient(batch_plan, order),
        batch_plan=batch_plan,
        batch_size=batch_size,
        mass=setting.mass,
        num_steps=num_steps,
        step_size=step_size,
        acceptance=acceptance,
        noise_variance=noise,
        discretisation_variance=discretisation,
        gradient_share=gradients / (gradients + testing),
        # a proposal that is independent of where it came from leaves the autocorrelation 1 - A
        ess_per_transition=acceptance / (2.0 - acceptance),
        cost_per_transition=gradients + testing,
        order=order,
        test=test,
        test_examples=examples,
        integrator="rotation",
    )
