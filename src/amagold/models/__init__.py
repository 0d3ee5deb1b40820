"""Ready-made posteriors."""

from amagold.models.double_well import double_well
from amagold.models.logistic import logistic

__all__ = ["double_well", "logistic"]
