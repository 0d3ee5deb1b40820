"""Ready-made posteriors."""

from amagold.models.logistic import logistic

__all__ = ["logistic"]
