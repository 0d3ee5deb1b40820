"""SGLD (Welling and Teh, 2011), and its amortized exact form (eq. 3 of the paper)."""

from amagold.acceptance import Acceptance, UnboundTest, never_reject
from amagold.core import trees
from amagold.gradients import GradientEstimator
from amagold.samplers._amortized import Sampler, amortized
from amagold.samplers._dynamics import check_dynamics, choose_gradient
from amagold.target import Target
from amagold.trajectory import Langevin
from amagold.trajectory._named_mass import mass_of


def sgld(
    target: Target,
    *,
    step_size: float,
    num_steps: int = 10,
    mass: trees.PyTree = 1.0,
    batch_size: int | None = None,
    gradient: GradientEstimator | None = None,
    acceptance: Acceptance | UnboundTest | None = None,
) -> Sampler:
    """T steps of stochastic gradient Langevin dynamics. Biased, unless
    `acceptance=amagold.acceptance.full()` makes it exact.

    The arguments mean what they mean in `amagold.amagold`: a step is a leapfrog step with a fresh
    momentum, so Welling and Teh's epsilon is `step_size**2`. The exact form evaluates two gradients
    per step, one for each direction of the proposal.
    """
    check_dynamics(step_size)
    proposal = Langevin(step_size, mass_of(target, mass))
    test = never_reject() if acceptance is None else acceptance
    return amortized(target, proposal, num_steps, choose_gradient(batch_size, gradient), test)
