# The table of public names: `__init__.py` reads it, and so do type checkers.

__version__: str

from . import (
    acceptance as acceptance,
    batches as batches,
    data as data,
    datasets as datasets,
    gradients as gradients,
    interop as interop,
    models as models,
    priors as priors,
    trajectory as trajectory,
)
from .acceptance import predicted_acceptance as predicted_acceptance
from .adaptation import SgdBurnIn as SgdBurnIn, Warmup as Warmup
from .core.devices import use_all_cores as use_all_cores
from .core.program_cache import keep_programs as keep_programs
from .core.randomness import normal_like as normal_like
from .diagnose import (
    ConvergenceBound as ConvergenceBound,
    Cost as Cost,
    Report as Report,
    check as check,
    convergence_bound as convergence_bound,
    effective_cost as effective_cost,
    gradient_variance as gradient_variance,
    kernel_stein_discrepancy as kernel_stein_discrepancy,
    maximum_r_hat as maximum_r_hat,
    metrics as metrics,
    minimum_ess as minimum_ess,
    symmetric_kl as symmetric_kl,
)
from .energy import energy_difference as energy_difference
from .interop import (
    Prediction as Prediction,
    from_module as from_module,
    from_numpyro as from_numpyro,
    from_optimizer as from_optimizer,
    last_layer as last_layer,
    predict as predict,
)
from .processes import PeerError as PeerError
from .runner import run_chains as run_chains
from .samplers import (
    BlockSampler as BlockSampler,
    Info as Info,
    Sampler as Sampler,
    State as State,
    amagold as amagold,
    amortized as amortized,
    blocks as blocks,
    cyclical as cyclical,
    from_sgd as from_sgd,
    ggmc as ggmc,
    hmc as hmc,
    l2mc as l2mc,
    psgld as psgld,
    sghmc as sghmc,
    sgld as sgld,
    sgnht as sgnht,
    sms_ubu as sms_ubu,
)
from .sampling import (
    Run as Run,
    SamplingWarning as SamplingWarning,
    load as load,
    resume as resume,
    sample as sample,
    update as update,
)
from .store import StoreFailedError as StoreFailedError, StoreInUseError as StoreInUseError
from .tables import compare as compare, fit as fit
from .target import (
    Density as Density,
    LinearBounds as LinearBounds,
    LinearLikelihood as LinearLikelihood,
    Posterior as Posterior,
    transforms as transforms,
)
