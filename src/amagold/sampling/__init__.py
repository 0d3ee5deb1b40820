"""One call from a posterior to results: plan, warm-up, draws, store, resume, advice."""

from amagold.sampling._advice import SamplingWarning
from amagold.sampling._load import load
from amagold.sampling._resume import resume
from amagold.sampling._run import Run
from amagold.sampling._sample import sample
from amagold.sampling._update import update

__all__ = ["Run", "SamplingWarning", "load", "resume", "sample", "update"]
