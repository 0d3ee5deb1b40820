"""One call from a posterior to results: plan, warm-up, draws, store, resume, advice."""

from amagold.sampling.advice import SamplingWarning
from amagold.sampling.load import load
from amagold.sampling.result import Run
from amagold.sampling.resume import resume
from amagold.sampling.sample import sample
from amagold.store.lock import StoreInUseError
from amagold.store.zarr_store import StoreFailedError
from amagold.warmup.settings import SgdBurnIn, Warmup

__all__ = ["Run", "SamplingWarning", "SgdBurnIn", "StoreFailedError", "StoreInUseError", "Warmup", "load", "resume", "sample"]
