"""The acceptance rate to aim for when the noise of the gradients is what costs acceptance."""

import math

from amagold.core import checks


def best_acceptance(gradient_share: float) -> float:
    """The acceptance that gives most effective draws for the cost, at a fixed trajectory length.

    A larger step needs fewer gradients for the same trajectory and raises s^2, the variance of log
    a, in proportion. With f the gradients' share of a transition's cost, Phi(-s/2) / cost is
    largest where s phi(s/2) / (4 Phi(-s/2)) = f.

    Args:
      gradient_share: f, between 0 (the test costs everything: accept nearly all) and 1 (the test is
        free: 0.234).
    """
    checks.number(
        "gradient_share",
        gradient_share,
        above=0.0,
        remedy="give the gradients' share of the cost, between 0 and 1",
    )
    if gradient_share > 1.0:
        raise ValueError(
            f"gradient_share must be at most 1, got {gradient_share:g}; give a share of the whole "
            "cost"
        )

    def share_at(spread: float) -> float:
        # s phi(s/2) / (4 Phi(-s/2)), which grows with s
        density = math.exp(-(spread**2) / 8.0) / math.sqrt(2.0 * math.pi)
        return spread / 2.0 * density / math.erfc(spread / (2.0 * math.sqrt(2.0)))

    low, high = 0.0, 4.0
    for _ in range(60):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if share_at(middle) < gradient_share else (low, middle)
    # 2 Phi(-s / 2)
    return math.erfc(low / (2.0 * math.sqrt(2.0)))
