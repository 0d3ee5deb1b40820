"""SGHMC (Algorithm 1 of the paper; Chen, Fox and Guestrin, 2014): fast, and biased at any fixed
step size.
"""

from amagold.acceptance import never_reject
from amagold.core import checks, trees
from amagold.gradients import GradientEstimator
from amagold.samplers._amortized import Sampler, amortized
from amagold.samplers._dynamics import check_dynamics, choose_gradient
from amagold.target import Target
from amagold.trajectory import Euler
from amagold.trajectory._named_mass import mass_of


def sghmc(
    target: Target,
    *,
    step_size: float,
    friction: float = 0.25,
    num_steps: int = 10,
    mass: trees.PyTree = 1.0,
    batch_size: int | None = None,
    gradient: GradientEstimator | None = None,
    resample_momentum: bool = True,
    noise_estimate: float = 0.0,
) -> Sampler:
    """T steps of SGHMC without a test. Biased. The arguments mean what they mean in
    `amagold.amagold`.

    AMAGOLD that never rejects walks the same path: with b = step_size * friction, this sampler at
    step_size / sqrt(1 + b) and friction / sqrt(1 + b) evaluates its gradients at the same
    positions, half a drift behind (see docs/design.md).

    Args:
      noise_estimate: beta-hat of Appendix A, the part of the friction's noise that the gradients
        are believed to bring along.
    """
    check_dynamics(step_size, friction)
    checks.number(
        "noise_estimate",
        noise_estimate,
        at_least=0.0,
        remedy="give beta-hat between 0 and the friction",
    )
    if trees.is_concrete((noise_estimate, friction)) and float(noise_estimate) > float(friction):
        raise ValueError(
            f"noise_estimate must be at most the friction {float(friction):g}, got "
            f"{float(noise_estimate):g}; "
            "raise the friction or lower the estimate"
        )
    proposal = Euler(step_size, friction, mass_of(target, mass), noise_estimate)
    return amortized(
        target,
        proposal,
        num_steps,
        choose_gradient(batch_size, gradient),
        never_reject(),
        resample_momentum,
    )
