"""Hamiltonian Monte Carlo: AMAGOLD with the exact gradient, no friction and a fresh momentum."""

from amagold.acceptance import Acceptance, UnboundTest
from amagold.core import trees
from amagold.samplers._amortized import Sampler
from amagold.samplers._l2mc import l2mc
from amagold.target import Target


def hmc(
    target: Target,
    *,
    step_size: float,
    num_steps: int = 10,
    mass: trees.PyTree = 1.0,
    acceptance: Acceptance | UnboundTest | None = None,
) -> Sampler:
    """HMC with the drift-kick-drift leapfrog (Appendix D of the paper). Exact. The arguments mean
    what they mean in `amagold.amagold`.

    With friction zero the work telescopes to the kinetic energy lost, so the ratio is the usual
    exp(H - H*).
    """
    return l2mc(
        target,
        step_size=step_size,
        friction=0.0,
        num_steps=num_steps,
        mass=mass,
        acceptance=acceptance,
    )
