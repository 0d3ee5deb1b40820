"""The acceptance to expect from the gradients' noise, before running anything."""

import math

import numpy as np

from amagold.core import checks
from amagold.core.array_types import Float64

BetweenSteps = Float64[np.ndarray, "{num_steps} {num_steps}"]


def predicted_acceptance(
    gradient_variance: float,
    *,
    step_size: float,
    num_steps: int = 10,
    friction: float = 0.25,
    plan: str = "iid",
    batches_per_epoch: int | None = None,
    curvature: float = 0.0,
    discretisation_variance: float = 0.0,
) -> float:
    """AMAGOLD's acceptance rate, 2 Phi(-s / 2), where s^2 is the variance of log a that noise and
    discretisation bring.

    With b = step_size * friction and independent batches, s^2 = step_size^2 num_steps V^2 / (1 +
    b). Batches without repetition have negatively correlated errors, which cancel along the
    trajectory: T of E batches of a shuffled epoch leave 1 - (T - 1) / (E - 1) of it while the
    momentum keeps its direction. Slightly pessimistic for s above 1.5.

    Args:
      gradient_variance: V^2 = tr(M^-1 Cov g), of one gradient; `amagold.gradient_variance` measures
        it.
      step_size, num_steps, friction: as in `amagold.amagold`.
      plan: "iid", "epoch" or "palindrome".
      batches_per_epoch: E = N // batch_size; needed for the last two.
      curvature: the target's typical curvature in units of the mass (1 when whitened): how fast the
        momentum turns. 0 takes a trajectory too short to turn.
      discretisation_variance: what the full-batch sampler's log ratio varies by at this step size;
        0 if that is negligible.
    """
    checks.number(
        "gradient_variance", gradient_variance, at_least=0.0, remedy="give V^2 = tr(M^-1 Cov g)"
    )
    checks.number("step_size", step_size, above=0.0, remedy="give a positive step size")
    checks.number("friction", friction, at_least=0.0, remedy="give a friction of zero or more")
    checks.number(
        "curvature", curvature, at_least=0.0, remedy="give the curvature in units of the mass"
    )
    checks.number(
        "discretisation_variance", discretisation_variance, at_least=0.0, remedy="give a variance"
    )
    checks.whole_number(
        "num_steps", num_steps, at_least=1, remedy="give the number of gradients per test"
    )
    errors = _error_correlation(plan, num_steps, batches_per_epoch)
    directions = _direction_correlation(num_steps, step_size, step_size * friction, curvature)
    # Var(log a) = (epsilon^2 / 4) V^2 sum_{t,u} corr(error_t, error_u) E[(p_t + p_{t+1}) . (p_u +
    # p_{u+1})] / d
    variance = 0.25 * step_size**2 * gradient_variance * float(np.sum(errors * directions))
    spread = math.sqrt(max(0.0, variance) + discretisation_variance)
    # 2 Phi(-s / 2) = erfc(s / (2 sqrt 2))
    return math.erfc(spread / (2.0 * math.sqrt(2.0)))


def _error_correlation(plan: str, num_steps: int, batches_per_epoch: int | None) -> BetweenSteps:
    """corr(error_t, error_u) of the gradients of steps t and u: 1 for one batch, -1 / (E - 1) for
    two batches of an epoch.
    """
    if plan == "iid":
        return np.eye(num_steps)
    if plan not in ("epoch", "palindrome"):
        raise ValueError(f"plan must be 'iid', 'epoch' or 'palindrome', got {plan!r}")
    checks.whole_number(
        "batches_per_epoch",
        batches_per_epoch,
        at_least=1,
        remedy=f"plan={plan!r} needs E = N // batch_size",
    )
    assert batches_per_epoch is not None
    steps = np.arange(num_steps)
    batch = steps if plan == "epoch" else np.minimum(steps, num_steps - 1 - steps)
    distinct = len(np.unique(batch))
    if distinct > batches_per_epoch and (plan == "palindrome" or num_steps % batches_per_epoch):
        raise ValueError(
            f"num_steps must fit the {batches_per_epoch} batches of an epoch with plan={plan!r}, "
            f"got {num_steps}"
        )
    same_epoch = (
        np.equal.outer(steps // batches_per_epoch, steps // batches_per_epoch)
        if plan == "epoch"
        else True
    )
    apart = -1.0 / (batches_per_epoch - 1) if batches_per_epoch > 1 else 0.0
    return np.where(np.equal.outer(batch, batch), 1.0, np.where(same_epoch, apart, 0.0))


def _direction_correlation(
    num_steps: int, step_size: float, decay: float, curvature: float
) -> BetweenSteps:
    """E[(p_t + p_{t+1}) (p_u + p_{u+1})] for a momentum that keeps c = (1-b)/(1+b) of itself per
    step and turns with the curvature.
    """
    keep = (1.0 - decay) / (1.0 + decay)
    lag = np.abs(np.subtract.outer(np.arange(num_steps), np.arange(num_steps)))
    turning = np.cos(step_size * math.sqrt(curvature) * lag)
    return np.where(
        lag == 0, 2.0 + 2.0 * keep, (1.0 + keep) ** 2 * keep ** np.maximum(lag - 1, 0) * turning
    )
