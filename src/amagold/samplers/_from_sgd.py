"""The (v, b, h) form of the paper's Appendix F, in the words of SGD with momentum."""

import math

from amagold.core import checks


def from_sgd(learning_rate: float, momentum_decay: float) -> dict[str, float]:
    """Keyword arguments for `amagold` or `sghmc` from SGD's: h = epsilon^2 / sigma^2 and b =
    epsilon * beta.

    The position and the work depend on (epsilon, beta, sigma) only through (h, b), so the mass is
    set to one: `amagold.amagold(target, batch_size=100, **amagold.from_sgd(learning_rate=1e-3,
    momentum_decay=0.01))`.

    Args:
      learning_rate: h, what the gradient of the whole energy (a sum over examples) is multiplied
        by.
      momentum_decay: b; AMAGOLD keeps (1 - b) / (1 + b) of the velocity per step, SGHMC 1 - 2b.
    """
    checks.number(
        "learning_rate", learning_rate, above=0.0, remedy="give h, the step on the summed energy"
    )
    checks.number(
        "momentum_decay", momentum_decay, at_least=0.0, remedy="give b, the momentum lost per step"
    )
    step_size = math.sqrt(learning_rate)
    return {"step_size": step_size, "friction": momentum_decay / step_size, "mass": 1.0}
