"""Priors of single terms, on the scale of their coefficients: `amagold.fit(..., priors=...)`."""

from amagold.priors._kinds import TermPrior, laplace, normal, student_t

__all__ = ["TermPrior", "laplace", "normal", "student_t"]
