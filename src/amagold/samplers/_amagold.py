"""AMAGOLD (Algorithm 2 of Zhang, Cooper and De Sa, 2020): exact draws from minibatch gradients."""

from amagold.acceptance import Acceptance, UnboundTest
from amagold.core import trees
from amagold.gradients import GradientEstimator
from amagold.samplers._amortized import Sampler, amortized
from amagold.samplers._dynamics import check_dynamics, choose_gradient
from amagold.target import Target
from amagold.trajectory import Leapfrog
from amagold.trajectory._named_mass import mass_of


def amagold(
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
    """T stochastic leapfrog steps, corrected once by a Metropolis-Hastings test. Exact.

    The authors' code makes T - 1 gradient steps for a T of theirs and leaves the prior out of the
    networks' test; this follows the paper: T gradients, and the same target in the gradient and in
    the test.

    Args:
      target: an `amagold.Posterior` or `amagold.Density`.
      step_size: epsilon.
      friction: beta; b = epsilon * beta is the momentum lost per step.
      num_steps: T, gradients per test.
      mass: sigma^2: one number, a diagonal (like the position, or one vector), or a dense matrix.
        "arrow" is the curvature of a model with groups, such as `models.mixed`: a block for each
        level of the largest factor, and a border of what all levels share.
      batch_size: examples per gradient, drawn independently; short for
        `gradient=amagold.gradients.minibatch(batch_size)`.
      gradient: an estimator from `amagold.gradients`; with neither this nor `batch_size`, the exact
        gradient.
      acceptance: a test from `amagold.acceptance`; None is the exact test over all data.
      resample_momentum: True draws the momentum afresh for every transition (the reversible chain);
        False keeps it and negates it on rejection (the irreversible chain).
    """
    check_dynamics(step_size, friction)
    proposal = Leapfrog(step_size, friction, mass_of(target, mass))
    return amortized(
        target,
        proposal,
        num_steps,
        choose_gradient(batch_size, gradient),
        acceptance,
        resample_momentum,
    )
