"""Unbiased estimators of the gradient of the energy U = -log pi.

An estimator draws its randomness for a whole trajectory at once, apart from the position where it
is used.
"""

from amagold.gradients._control_variate import ControlVariate, control_variate
from amagold.gradients._expansion import Expansion, expansion
from amagold.gradients._full_gradient import Full, full
from amagold.gradients._gradient_estimator import GradientEstimator
from amagold.gradients._minibatch import Minibatch, minibatch
from amagold.gradients._noisy import Noisy, noisy

__all__ = [
    "ControlVariate",
    "Expansion",
    "Full",
    "GradientEstimator",
    "Minibatch",
    "Noisy",
    "control_variate",
    "expansion",
    "full",
    "minibatch",
    "noisy",
]
