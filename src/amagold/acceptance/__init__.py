"""The Metropolis-Hastings tests that decide on a trajectory: how each decides, and whether it is
exact.
"""

from amagold.acceptance.austerity import Austerity, austerity
from amagold.acceptance.barker import Barker, BarkerTest, barker
from amagold.acceptance.base import Acceptance, Decision
from amagold.acceptance.confidence import Confidence, confidence
from amagold.acceptance.delayed import Delayed, DelayedTest, delayed
from amagold.acceptance.firefly import FireflyTest
from amagold.acceptance.firefly_setup import Firefly, firefly
from amagold.acceptance.full import FullTest, full
from amagold.acceptance.never_reject import NeverReject, never_reject
from amagold.acceptance.predicted import predicted_acceptance
from amagold.acceptance.sequential import SequentialTest
from amagold.acceptance.tuna import TunaTest
from amagold.acceptance.tuna_setup import Tuna, tuna

__all__ = [
    "Acceptance",
    "Austerity",
    "Barker",
    "BarkerTest",
    "Confidence",
    "Decision",
    "Delayed",
    "DelayedTest",
    "Firefly",
    "FireflyTest",
    "FullTest",
    "NeverReject",
    "SequentialTest",
    "Tuna",
    "TunaTest",
    "austerity",
    "barker",
    "confidence",
    "delayed",
    "firefly",
    "full",
    "never_reject",
    "predicted_acceptance",
    "tuna",
]
