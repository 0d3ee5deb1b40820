"""Whether a target is one of those that are swept, level by level; the plans themselves load only
where it is.
"""

from typing import Any

import jax

from amagold.target import Posterior, Target
from amagold.target._group_effects import GroupedLikelihood
from amagold.target._linear_bounds import SparsePredictor


def plan_sweeps(target: Target, num_chains: int, key: jax.Array) -> Any:
    """The plan of a mixed model, or of one large factor; None where neither applies."""
    if not isinstance(target, Posterior):
        return None
    if isinstance(target.log_likelihood, GroupedLikelihood):
        from amagold.planning._effects_plan import plan_effects

        return plan_effects(target, num_chains, key)
    if target.bounds is not None and isinstance(target.bounds.predictor, SparsePredictor):
        from amagold.planning._sweep_plan import plan_sweep

        return plan_sweep(target, num_chains, key)
    return None
