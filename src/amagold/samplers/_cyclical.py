"""Cyclical step sizes (Zhang et al., 2020): large steps look for modes, small ones stay and look
around.
"""

import dataclasses

from amagold.core import checks
from amagold.samplers._amortized import Sampler


def cyclical(sampler: Sampler, length: int) -> Sampler:
    """The sampler with step sizes that fall along half a cosine, again and again. Its label stays:
    each transition's step size is known from its number alone, so that each is exact where the
    sampler is.

    Transition k has the step size (epsilon / 2) (1 + cos(pi (k mod length) / length)), with the
    sampler's own epsilon, which warm-up may tune. `thin=length` keeps the draws that end a cycle.

    Args:
      sampler: one whose proposal has a `step_size`.
      length: transitions in a cycle.
    """
    checks.whole_number("length", length, at_least=2, remedy="give the transitions in a cycle")
    if "step_size" not in sampler.settings:
        proposal = getattr(sampler.proposal, "proposal", sampler.proposal)
        raise ValueError(
            f"sampler must have a step size, but its proposal {type(proposal).__name__} has no "
            "field 'step_size'; use another sampler"
        )
    return dataclasses.replace(sampler, cycle=int(length))
