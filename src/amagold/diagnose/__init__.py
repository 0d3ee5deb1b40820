"""What tells whether draws are right and what they cost."""

from amagold.diagnose import metrics
from amagold.diagnose._convergence import maximum_r_hat, minimum_ess
from amagold.diagnose._convergence_bound import ConvergenceBound, convergence_bound
from amagold.diagnose._effective_cost import Cost, effective_cost
from amagold.diagnose._exactness import Quantity, Report, check
from amagold.diagnose._gradient_variance import gradient_variance
from amagold.diagnose._stein import kernel_stein_discrepancy
from amagold.diagnose._symmetric_kl import symmetric_kl

__all__ = [
    "ConvergenceBound",
    "Cost",
    "Quantity",
    "Report",
    "check",
    "convergence_bound",
    "effective_cost",
    "gradient_variance",
    "kernel_stein_discrepancy",
    "maximum_r_hat",
    "metrics",
    "minimum_ess",
    "symmetric_kl",
]
