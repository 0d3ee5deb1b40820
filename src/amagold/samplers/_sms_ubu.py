"""SMS-UBU (Paulin, Whalley, Chada and Leimkuhler, 2024): sweeps over the data, forward and
backward, and their amortized exact form.
"""

from amagold.acceptance import Acceptance, UnboundTest, never_reject
from amagold.core import trees
from amagold.gradients import GradientEstimator, minibatch
from amagold.samplers._amortized import Sampler, amortized
from amagold.samplers._dynamics import check_dynamics, choose_gradient
from amagold.target import Target
from amagold.trajectory import Ubu
from amagold.trajectory._named_mass import mass_of

NUM_STEPS = 10  # where there are no batches to sweep


def sms_ubu(
    target: Target,
    *,
    step_size: float,
    friction: float = 0.25,
    num_steps: int | None = None,
    mass: trees.PyTree = 1.0,
    batch_size: int | None = None,
    gradient: GradientEstimator | None = None,
    acceptance: Acceptance | UnboundTest | None = None,
    resample_momentum: bool = False,
) -> Sampler:
    """UBU steps by a freshly shuffled sweep over the data and back. Biased, unless
    `acceptance=amagold.acceptance.full()` makes it exact.

    The arguments mean what they mean in `amagold.amagold`, but for these.

    Args:
      num_steps: T. None is all batches there and back, T = 2 (N // batch_size), or 10 without
        batches.
      batch_size: examples per gradient; short for
        `gradient=amagold.gradients.minibatch(batch_size, plan="palindrome")`.
      resample_momentum: the published method keeps its momentum.
    """
    check_dynamics(step_size, friction)
    if batch_size is not None and gradient is None:
        gradient, batch_size = minibatch(batch_size, plan="palindrome"), None
    chosen = choose_gradient(batch_size, gradient)
    if num_steps is None:
        batching = chosen.batching()
        num_steps = NUM_STEPS if batching is None else 2 * (target.num_examples // batching[0])
    test = never_reject() if acceptance is None else acceptance
    proposal = Ubu(step_size, friction, mass_of(target, mass))
    return amortized(target, proposal, max(1, num_steps), chosen, test, resample_momentum)
