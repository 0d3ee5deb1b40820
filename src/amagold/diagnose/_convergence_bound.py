"""The paper's bound on how much gradient noise slows the chain (Theorem 2), as published."""

import math
from typing import NamedTuple

from amagold.core import checks


class ConvergenceBound(NamedTuple):
    """The paper's bound: gap(AMAGOLD at the rescaled parameters) >= gap_ratio * gap(L2MC at the
    given ones), it says.
    """

    c: float
    step_size: float  # epsilon, unchanged
    mass: float  # sigma^2 c^(-1/2): sigma c^(-1/4), squared
    friction: float  # beta c^(-1/2)
    gap_ratio: float  # the lower bound on gamma / gamma-bar
    is_assumption_met: bool  # epsilon V^2 <= 4 sigma^2 beta d


def convergence_bound(
    gradient_variance: float,
    *,
    step_size: float,
    friction: float,
    num_steps: int,
    mass: float = 1.0,
    dimension: int = 1,
) -> ConvergenceBound:
    """The paper's bound on the ratio of spectral gaps, AMAGOLD's over L2MC's. To plan with, use
    `amagold.predicted_acceptance`.

    It is the formula as published, and two things should be known about it.

    *It does not hold as stated.* The proof needs the rescaled chain to make the same leapfrog
    steps, but its h = epsilon^2 / sigma^2 is larger by c^(1/2). Where the trajectory of the
    rescaled chain closes on itself it hardly moves, while the other one does: with U = theta^2 / 2,
    T = 3, h c^(1/2) = 3, b = epsilon beta = 1e-6 and x = 1 the ratio of the gaps is below 1e-3, and
    the bound says 0.287. `docs/spectral-gaps.md` computes this. It also presumes that the gap of
    L2MC is positive, which on unbounded domains it need not be.

    *Where it holds, it is loose.* It falls with x = epsilon T V^2 / (sigma^2 beta), and x = s^2 (1
    + b) / b, where s^2 is the variance of log a that the noise brings, and 2 Phi(-s / 2) the
    acceptance: for b = 0.01 an acceptance of 0.96 (s = 0.1) has x = 1 and a bound of 0.29. Measured
    ratios follow the acceptance.

    Args:
      gradient_variance: V^2, where Cov(grad U~) <= (V^2 / d) I, in the units of the position: d
        times the largest eigenvalue of the covariance, which is its trace when the noise is
        isotropic (`amagold.gradient_variance` with mass 1) and more when not.
      step_size: epsilon, of L2MC.
      friction: beta, of L2MC.
      num_steps: T.
      mass: sigma^2, of L2MC.
      dimension: d.
    """
    checks.number(
        "gradient_variance",
        gradient_variance,
        at_least=0.0,
        remedy="give V^2, d times the largest variance of the gradient",
    )
    checks.number("step_size", step_size, above=0.0, remedy="give a positive step size")
    checks.number(
        "friction",
        friction,
        above=0.0,
        remedy="the bound divides by the friction; without friction it says nothing",
    )
    checks.number("mass", mass, above=0.0, remedy="give sigma^2 as one positive number")
    checks.whole_number(
        "num_steps", num_steps, at_least=1, remedy="give the number of gradients per test"
    )
    checks.whole_number("dimension", dimension, at_least=1, remedy="give the number of coordinates")
    # epsilon V^2 / (sigma^2 beta)
    noise = step_size * gradient_variance / (mass * friction)
    # c = 1 + sqrt(epsilon V^2 / (16 sigma^2 beta T d^2))
    c = 1.0 + math.sqrt(noise / (16.0 * num_steps * dimension**2))
    # gamma / gamma-bar >= exp(-epsilon T V^2 / (4 sigma^2 beta) - sqrt(epsilon T V^2 / (sigma^2
    # beta)))
    ratio = math.exp(-0.25 * num_steps * noise - math.sqrt(num_steps * noise))
    return ConvergenceBound(
        c,
        float(step_size),
        mass / math.sqrt(c),
        friction / math.sqrt(c),
        ratio,
        noise <= 4.0 * dimension,
    )
