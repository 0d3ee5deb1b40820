"""What tells whether draws are right and what they cost."""

from amagold.diagnose.gradient_variance import gradient_variance
from amagold.diagnose.symmetric_kl import symmetric_kl

__all__ = ["gradient_variance", "symmetric_kl"]
