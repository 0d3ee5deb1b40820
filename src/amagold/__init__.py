"""amagold: exact posterior draws from minibatch gradients.

Names are loaded when they are first used, so that `import amagold` and the command line's help stay
light.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amagold import (
        acceptance,
        batches,
        datasets,
        gradients,
        models,
        run,
        store,
        trajectory,
        warmup,
    )
    from amagold.acceptance import predicted_acceptance
    from amagold.diagnose import (
        ConvergenceBound,
        Cost,
        Report,
        check,
        convergence_bound,
        effective_cost,
        gradient_variance,
        kernel_stein_discrepancy,
        maximum_r_hat,
        minimum_ess,
        symmetric_kl,
    )
    from amagold.energy import energy_difference
    from amagold.randomness import normal_like
    from amagold.run import run_chains, use_all_cores
    from amagold.samplers import (
        Info,
        Sampler,
        State,
        amagold,
        amortized,
        from_sgd,
        hmc,
        l2mc,
        sghmc,
        sgld,
    )
    from amagold.sampling.advice import SamplingWarning
    from amagold.sampling.load import load
    from amagold.sampling.result import Run
    from amagold.sampling.resume import resume
    from amagold.sampling.sample import sample
    from amagold.store.lock import StoreInUseError
    from amagold.store.zarr_store import StoreFailedError
    from amagold.target import Density, LinearBounds, Posterior
    from amagold.warmup.settings import SgdBurnIn, Warmup

__version__ = "0.1.0"

_HOMES = {
    "ConvergenceBound": "amagold.diagnose",
    "Cost": "amagold.diagnose",
    "Density": "amagold.target",
    "Info": "amagold.samplers",
    "LinearBounds": "amagold.target",
    "Posterior": "amagold.target",
    "Report": "amagold.diagnose",
    "Run": "amagold.sampling.result",
    "Sampler": "amagold.samplers",
    "SamplingWarning": "amagold.sampling.advice",
    "SgdBurnIn": "amagold.warmup.settings",
    "State": "amagold.samplers",
    "StoreFailedError": "amagold.store.zarr_store",
    "StoreInUseError": "amagold.store.lock",
    "Warmup": "amagold.warmup.settings",
    "amagold": "amagold.samplers",
    "amortized": "amagold.samplers",
    "check": "amagold.diagnose",
    "convergence_bound": "amagold.diagnose",
    "effective_cost": "amagold.diagnose",
    "energy_difference": "amagold.energy",
    "from_sgd": "amagold.samplers",
    "gradient_variance": "amagold.diagnose",
    "hmc": "amagold.samplers",
    "kernel_stein_discrepancy": "amagold.diagnose",
    "l2mc": "amagold.samplers",
    "load": "amagold.sampling.load",
    "maximum_r_hat": "amagold.diagnose",
    "minimum_ess": "amagold.diagnose",
    "normal_like": "amagold.randomness",
    "predicted_acceptance": "amagold.acceptance",
    "resume": "amagold.sampling.resume",
    "run_chains": "amagold.run",
    "sample": "amagold.sampling.sample",
    "sghmc": "amagold.samplers",
    "sgld": "amagold.samplers",
    "symmetric_kl": "amagold.diagnose",
    "use_all_cores": "amagold.run",
}
_ROOMS = (
    "acceptance",
    "batches",
    "datasets",
    "gradients",
    "models",
    "run",
    "store",
    "trajectory",
    "warmup",
)

__all__ = [
    "ConvergenceBound",
    "Cost",
    "Density",
    "Info",
    "LinearBounds",
    "Posterior",
    "Report",
    "Run",
    "Sampler",
    "SamplingWarning",
    "SgdBurnIn",
    "State",
    "StoreFailedError",
    "StoreInUseError",
    "Warmup",
    "acceptance",
    "amagold",
    "amortized",
    "batches",
    "check",
    "convergence_bound",
    "datasets",
    "effective_cost",
    "energy_difference",
    "from_sgd",
    "gradient_variance",
    "gradients",
    "hmc",
    "kernel_stein_discrepancy",
    "l2mc",
    "load",
    "maximum_r_hat",
    "minimum_ess",
    "models",
    "normal_like",
    "predicted_acceptance",
    "resume",
    "run",
    "run_chains",
    "sample",
    "sghmc",
    "sgld",
    "store",
    "symmetric_kl",
    "trajectory",
    "use_all_cores",
    "warmup",
]


def __getattr__(name: str) -> Any:
    if name in _HOMES or name in _ROOMS:
        # before anything computes, because JAX fixes its devices then
        importlib.import_module("amagold.run.devices").use_all_cores()
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _ROOMS:
        return importlib.import_module(f"amagold.{name}")
    raise AttributeError(f"module 'amagold' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
