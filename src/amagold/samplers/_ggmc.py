"""GGMC (Garriga-Alonso and Fortuin, 2021): OBABO steps with minibatch gradients and an amortized
test.
"""

from amagold.acceptance import Acceptance, UnboundTest
from amagold.core import trees
from amagold.gradients import GradientEstimator
from amagold.samplers._amortized import Sampler, amortized
from amagold.samplers._dynamics import check_dynamics, choose_gradient
from amagold.target import Target
from amagold.trajectory import Obabo
from amagold.trajectory._named_mass import mass_of


def ggmc(
    target: Target,
    *,
    step_size: float,
    friction: float = 0.25,
    num_steps: int = 10,
    mass: trees.PyTree = 1.0,
    batch_size: int | None = None,
    gradient: GradientEstimator | None = None,
    acceptance: Acceptance | UnboundTest | None = None,
    resample_momentum: bool = True,
) -> Sampler:
    """T steps of OBABO, corrected once. Exact, unless
    `acceptance=amagold.acceptance.never_reject()` leaves the test out.

    The arguments mean what they mean in `amagold.amagold`: a step keeps exp(-2 b) of its momentum,
    and renews the rest at either end. Each step evaluates two gradients of one minibatch, at
    either end of its drift.
    """
    check_dynamics(step_size, friction)
    proposal = Obabo(step_size, friction, mass_of(target, mass))
    return amortized(
        target,
        proposal,
        num_steps,
        choose_gradient(batch_size, gradient),
        acceptance,
        resample_momentum,
    )
