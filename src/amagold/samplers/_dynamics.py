"""The words that all samplers share, checked once."""

from typing import Any

from amagold.core import checks
from amagold.gradients import GradientEstimator, full, minibatch


def check_dynamics(step_size: Any, friction: Any = 0.0) -> None:
    """Raise unless the step size is positive and the friction is not negative."""
    checks.number("step_size", step_size, above=0.0, remedy="give a positive step size")
    checks.number("friction", friction, at_least=0.0, remedy="give a friction of zero or more")


def choose_gradient(
    batch_size: int | None, gradient: GradientEstimator | None
) -> GradientEstimator:
    """`batch_size=B` is short for `gradient=gradients.minibatch(B)`; with neither it is the exact
    gradient.
    """
    if batch_size is not None and gradient is not None:
        raise ValueError(
            "batch_size and gradient must not both be given; put the batch size into the gradient"
        )
    if batch_size is not None:
        return minibatch(batch_size)
    return full() if gradient is None else gradient
