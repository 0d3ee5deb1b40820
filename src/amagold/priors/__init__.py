"""Priors of single terms, on the scale of their coefficients: `amagold.fit(..., priors=...)`."""

from amagold.priors._kinds import TermPrior, horseshoe, laplace, normal, student_t

__all__ = ["TermPrior", "horseshoe", "laplace", "normal", "student_t"]
