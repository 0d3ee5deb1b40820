"""Preconditioned SGLD (Li et al., 2016), and its amortized exact form."""

from collections.abc import Callable
from typing import Any

import jax

from amagold.acceptance import Acceptance, UnboundTest, never_reject
from amagold.core import checks, trees
from amagold.gradients import GradientEstimator
from amagold.samplers._amortized import Sampler, amortized
from amagold.samplers._dynamics import check_dynamics, choose_gradient
from amagold.target import Target
from amagold.trajectory import Preconditioned, RunningPreconditioner
from amagold.trajectory._preconditioned import FrozenDiagonal


def psgld(
    target: Target,
    *,
    step_size: float,
    num_steps: int = 10,
    preconditioner: Callable[[trees.PyTree], trees.PyTree] | trees.PyTree = None,
    batch_size: int | None = None,
    gradient: GradientEstimator | None = None,
    acceptance: Acceptance | UnboundTest | None = None,
    decay: float = 0.99,
    floor: float = 1e-3,
) -> Sampler:
    """T steps of Langevin dynamics with a diagonal preconditioner. Biased, unless the
    preconditioner is fixed and `acceptance=amagold.acceptance.full()` makes it exact.

    The arguments mean what they mean in `amagold.amagold`, but for these. As Li et al. do, the
    drift that the slope of a preconditioner would ask for is left out; a test makes up for it.

    Args:
      preconditioner: None learns it from a running average V of squared gradients, as published,
        1 / (floor + sqrt(V)); no test can follow that. Positive numbers like the position, such as
        `sampler.proposal.scales(state.momentum)` of a run that has learnt it, or a function of
        the position that gives such numbers, are fixed.
      decay: alpha, what is kept of V at each step.
      floor: lambda, for gradients of U; for gradients per example it is 1/N of this.
    """
    check_dynamics(step_size)
    checks.number("floor", floor, above=0.0, remedy="give a small positive number")
    checks.number(
        "decay", decay, at_least=0.0, remedy="give a number between 0 and 1; 0.99 is usual"
    )
    test = never_reject() if acceptance is None else acceptance
    chosen = choose_gradient(batch_size, gradient)
    if preconditioner is not None:
        is_function = callable(preconditioner)
        fixed = preconditioner if is_function else FrozenDiagonal(_checked(preconditioner))
        return amortized(target, Preconditioned(step_size, fixed), num_steps, chosen, test)
    if getattr(test, "uses_work", True):
        raise ValueError(
            "preconditioner must be fixed for a test to follow, got none: a running average "
            "remembers gradients that the way back has not seen; give what a run without a test "
            "has learnt, sampler.proposal.scales(state.momentum), or a function of the position"
        )
    proposal = RunningPreconditioner(step_size, decay, floor)
    return amortized(target, proposal, num_steps, chosen, test, resample_momentum=False)


def _checked(numbers: Any) -> Any:
    numbers = trees.as_position(numbers, "preconditioner")
    if trees.is_concrete(numbers) and not all(
        (leaf > 0).all() for leaf in jax.tree.leaves(numbers)
    ):
        raise ValueError(
            "preconditioner must be positive everywhere, got a number that is not; give variances"
        )
    return numbers
