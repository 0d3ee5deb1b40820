# The table of public names: `__init__.py` reads it, and so do type checkers.

__version__: str

from . import (
    acceptance as acceptance,
)
from . import (
    batches as batches,
    data as data,
)
from . import (
    datasets as datasets,
)
from . import (
    gradients as gradients,
)
from . import (
    models as models,
)
from . import (
    trajectory as trajectory,
)
from .acceptance import predicted_acceptance as predicted_acceptance
from .adaptation import SgdBurnIn as SgdBurnIn
from .adaptation import Warmup as Warmup
from .core.devices import use_all_cores as use_all_cores
from .core.randomness import normal_like as normal_like
from .diagnose import (
    ConvergenceBound as ConvergenceBound,
)
from .diagnose import (
    Cost as Cost,
)
from .diagnose import (
    Report as Report,
)
from .diagnose import (
    check as check,
)
from .diagnose import (
    convergence_bound as convergence_bound,
)
from .diagnose import (
    effective_cost as effective_cost,
)
from .diagnose import (
    gradient_variance as gradient_variance,
)
from .diagnose import (
    kernel_stein_discrepancy as kernel_stein_discrepancy,
)
from .diagnose import (
    maximum_r_hat as maximum_r_hat,
)
from .diagnose import (
    minimum_ess as minimum_ess,
)
from .diagnose import (
    symmetric_kl as symmetric_kl,
)
from .energy import energy_difference as energy_difference
from .runner import run_chains as run_chains
from .samplers import (
    Info as Info,
)
from .samplers import (
    Sampler as Sampler,
)
from .samplers import (
    State as State,
)
from .samplers import (
    amagold as amagold,
)
from .samplers import (
    amortized as amortized,
)
from .samplers import (
    from_sgd as from_sgd,
)
from .samplers import (
    hmc as hmc,
)
from .samplers import (
    l2mc as l2mc,
)
from .samplers import (
    sghmc as sghmc,
)
from .samplers import (
    sgld as sgld,
)
from .sampling import (
    Run as Run,
)
from .sampling import (
    SamplingWarning as SamplingWarning,
)
from .sampling import (
    load as load,
)
from .sampling import (
    resume as resume,
)
from .sampling import (
    sample as sample,
)
from .store import StoreFailedError as StoreFailedError
from .store import StoreInUseError as StoreInUseError
from .target import Density as Density
from .target import LinearBounds as LinearBounds
from .target import Posterior as Posterior
