"""L2MC, second-order Langevin Monte Carlo with an amortized test: AMAGOLD with the exact
gradient.
"""

from amagold.acceptance import Acceptance, UnboundTest
from amagold.core import trees
from amagold.gradients import full
from amagold.samplers._amagold import amagold
from amagold.samplers._amortized import Sampler
from amagold.target import Target


def l2mc(
    target: Target,
    *,
    step_size: float,
    friction: float = 0.25,
    num_steps: int = 10,
    mass: trees.PyTree = 1.0,
    acceptance: Acceptance | UnboundTest | None = None,
    resample_momentum: bool = True,
) -> Sampler:
    """AMAGOLD with the gradient over all data. Exact. The arguments mean what they mean in
    `amagold.amagold`.
    """
    return amagold(
        target,
        step_size=step_size,
        friction=friction,
        num_steps=num_steps,
        mass=mass,
        gradient=full(),
        acceptance=acceptance,
        resample_momentum=resample_momentum,
    )
