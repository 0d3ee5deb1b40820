"""SGNHT, stochastic gradients with a thermostat (Ding et al., 2014), and its amortized exact
form.
"""

from amagold.acceptance import Acceptance, UnboundTest, never_reject
from amagold.core import checks, trees
from amagold.gradients import GradientEstimator
from amagold.samplers._amortized import Sampler, amortized
from amagold.samplers._dynamics import check_dynamics, choose_gradient
from amagold.target import Target
from amagold.trajectory import NoseHoover
from amagold.trajectory._named_mass import mass_of


def sgnht(
    target: Target,
    *,
    step_size: float,
    friction: float = 0.25,
    num_steps: int = 10,
    mass: trees.PyTree = 1.0,
    batch_size: int | None = None,
    gradient: GradientEstimator | None = None,
    acceptance: Acceptance | UnboundTest | None = None,
    resample_momentum: bool = False,
    inertia: float = 1.0,
) -> Sampler:
    """T steps with a thermostat that learns how much friction the gradients' noise needs. Biased,
    unless `acceptance=amagold.acceptance.full()` makes it exact.

    The arguments mean what they mean in `amagold.amagold`, but for these. Ding's A is 2 friction.

    Args:
      resample_momentum: False keeps the momentum and the thermostat, and negates both on rejection;
        True draws both afresh, so that a thermostat without a test forgets what it learnt.
      inertia: how slow the thermostat is, per parameter; 1 is the published one.
    """
    check_dynamics(step_size, friction)
    checks.number("inertia", inertia, above=0.0, remedy="give a positive number; 1 is usual")
    proposal = NoseHoover(step_size, friction, mass_of(target, mass), inertia)
    test = never_reject() if acceptance is None else acceptance
    return amortized(
        target, proposal, num_steps, choose_gradient(batch_size, gradient), test, resample_momentum
    )
