# The public names of this room: `__init__.py` reads them, and so do type checkers.

from . import metrics as metrics
from ._convergence import maximum_r_hat as maximum_r_hat, minimum_ess as minimum_ess
from ._convergence_bound import (
    ConvergenceBound as ConvergenceBound,
    convergence_bound as convergence_bound,
)
from ._effective_cost import Cost as Cost, effective_cost as effective_cost
from ._exactness import Quantity as Quantity, Report as Report, check as check
from ._gradient_variance import gradient_variance as gradient_variance
from ._stein import kernel_stein_discrepancy as kernel_stein_discrepancy
from ._symmetric_kl import symmetric_kl as symmetric_kl
