"""Ready-made posteriors."""

from amagold.models.double_well import double_well
from amagold.models.logistic import logistic
from amagold.models.network import network

__all__ = ["double_well", "logistic", "network"]
