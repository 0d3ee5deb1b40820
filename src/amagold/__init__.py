"""amagold: exact posterior draws from minibatch gradients.

Names are loaded when they are first used, so that `import amagold` and the command line's help stay light.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from amagold import acceptance, batches, datasets, gradients, models, run, trajectory
    from amagold.acceptance import predicted_acceptance
    from amagold.diagnose import gradient_variance, symmetric_kl
    from amagold.energy import energy_difference
    from amagold.randomness import normal_like
    from amagold.run import run_chains
    from amagold.samplers import Info, Sampler, State, amagold, amortized, from_sgd, hmc, l2mc, sghmc, sgld
    from amagold.sampling import Run, SamplingWarning, SgdBurnIn, StoreFailedError, StoreInUseError, Warmup, load, resume, sample
    from amagold.target import Density, Posterior

__version__ = "0.1.0"

_HOMES = {
    "Density": "amagold.target",
    "Info": "amagold.samplers",
    "Posterior": "amagold.target",
    "Run": "amagold.sampling",
    "Sampler": "amagold.samplers",
    "SamplingWarning": "amagold.sampling",
    "SgdBurnIn": "amagold.sampling",
    "State": "amagold.samplers",
    "StoreFailedError": "amagold.sampling",
    "StoreInUseError": "amagold.sampling",
    "Warmup": "amagold.sampling",
    "amagold": "amagold.samplers",
    "amortized": "amagold.samplers",
    "energy_difference": "amagold.energy",
    "from_sgd": "amagold.samplers",
    "gradient_variance": "amagold.diagnose",
    "hmc": "amagold.samplers",
    "l2mc": "amagold.samplers",
    "load": "amagold.sampling",
    "normal_like": "amagold.randomness",
    "predicted_acceptance": "amagold.acceptance",
    "resume": "amagold.sampling",
    "run_chains": "amagold.run",
    "sample": "amagold.sampling",
    "sghmc": "amagold.samplers",
    "sgld": "amagold.samplers",
    "symmetric_kl": "amagold.diagnose",
}
_ROOMS = ("acceptance", "batches", "datasets", "gradients", "models", "run", "trajectory")

__all__ = [
    "Density",
    "Info",
    "Posterior",
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
    "datasets",
    "energy_difference",
    "from_sgd",
    "gradient_variance",
    "gradients",
    "hmc",
    "l2mc",
    "load",
    "models",
    "normal_like",
    "predicted_acceptance",
    "resume",
    "run",
    "run_chains",
    "sample",
    "sghmc",
    "sgld",
    "symmetric_kl",
    "trajectory",
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
