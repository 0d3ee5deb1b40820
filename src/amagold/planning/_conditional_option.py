"""Part by part under the data's expansion: for horseshoe priors, which have no mode to expand
about.
"""

import math
from dataclasses import replace
from typing import Any, cast

import jax.numpy as jnp
import numpy as np

from amagold.acceptance import Acceptance, UnboundTest
from amagold.core import trees
from amagold.gradients import GradientEstimator
from amagold.mode._derivatives import density_derivatives
from amagold.mode._reference import Reference
from amagold.planning._at_mode import AtMode
from amagold.planning._candidate import Candidate
from amagold.planning._option import GradientOption, TestOption, TrajectoryOption, count
from amagold.planning._plan_inputs import PlanInputs, Trial
from amagold.samplers import Sampler, amortized
from amagold.target import Target
from amagold.target._horseshoe import Horseshoe
from amagold.trajectory._conditional_draws import ConditionalDraws

CONDITIONAL = "conditional"
KICKS = 3  # by the full gradient, where the expansion leaves too much out
MOST_LEFT = 0.3  # of log a's variance, by coefficients that move along with tau
AFRESH = 0.5 * math.pi  # the angle that draws coefficients afresh


class ConditionalOption(TrajectoryOption):
    name = CONDITIONAL
    source = "what the data differ by from their expansion"

    def predict(
        self, inputs: PlanInputs, gradient: GradientOption, test: TestOption, trial: Trial
    ) -> Candidate | None:
        """None: where there is a horseshoe no other plan is open, and elsewhere not this one."""
        return None

    def build(
        self,
        plan: Any,
        target: Target,
        mass: trees.PyTree,
        gradient: GradientEstimator | None,
        test: Acceptance | UnboundTest | None,
        at_mode: AtMode,
    ) -> Sampler:
        # a stored run has the numbers of its proposal, and any of the same form will do
        reference = _nowhere(at_mode.position) if at_mode.reference is None else at_mode.reference
        proposal = replace(
            conditional_draws(target, reference, plan.step_size),
            num_kicks=KICKS if plan.gradient == "full" else 0,
            moves_along=plan.discretisation_variance <= MOST_LEFT,
        )
        return amortized(target, proposal, plan.num_steps, gradient, test)

    def words(self, plan: Any) -> str:
        kicks = (
            f"; {KICKS} kicks by the gradient in each make up for what that leaves out, so that "
            "more is accepted than without, which is what is expected below"
        )
        return (
            f"Steps: {count(plan.num_steps, 'round')} of draws per proposal, of the horseshoe's "
            "scales given the coefficients and of the coefficients given the scales, under the "
            "data's second-order expansion; the scales of single coefficients are integrated out"
            f"{kicks if plan.gradient == 'full' else ''}. Warm-up shortens the steps only where "
            f"less than {plan.target_acceptance:.0%} is accepted."
        )


def horseshoe_in(target: Target) -> Horseshoe | None:
    """The horseshoe of the target's prior, if it has one."""
    found = getattr(target.log_prior, "horseshoe", None)
    return found if isinstance(found, Horseshoe) else None


def conditional_draws(target: Target, reference: Reference, step_size: float) -> ConditionalDraws:
    """About the reference, where other priors are expanded too."""
    shrunk, prior = horseshoe_in(target), cast("Any", target.log_prior)
    assert shrunk is not None
    of_others = density_derivatives(prior.others, reference.position)
    slope = np.asarray(reference.gradient, np.float64) + np.asarray(of_others.gradient, np.float64)
    curvature = np.asarray(reference.hessian, np.float64) + np.asarray(
        of_others.hessian, np.float64
    )
    kept = len(slope) - shrunk.num_groups
    return ConditionalDraws(
        jnp.float32(step_size),
        shrunk,
        trees.flatten(reference.position)[:kept],
        jnp.asarray(slope[:kept], jnp.float32),
        jnp.asarray(curvature[:kept, :kept], jnp.float32),
    )


def _nowhere(position: trees.PyTree) -> Reference:
    size = trees.size(position)
    return Reference(position, jnp.zeros(size), jnp.eye(size))
