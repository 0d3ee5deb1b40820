"""The Metropolis-Hastings tests that decide on a trajectory: how each decides, and whether it is
exact.
"""

from amagold.acceptance._acceptance_test import Acceptance, Decision, UnboundTest
from amagold.acceptance._austerity import Austerity, austerity
from amagold.acceptance._barker import Barker, BarkerTest, barker
from amagold.acceptance._confidence import Confidence, confidence
from amagold.acceptance._delayed import Delayed, DelayedTest, delayed
from amagold.acceptance._firefly import FireflyTest
from amagold.acceptance._firefly_setup import Firefly, firefly
from amagold.acceptance._full_test import FullTest, full
from amagold.acceptance._level_test import LevelTest
from amagold.acceptance._never_reject import NeverReject, never_reject
from amagold.acceptance._predicted_acceptance import predicted_acceptance
from amagold.acceptance._sequential_test import SequentialTest
from amagold.acceptance._tuna import TunaTest
from amagold.acceptance._tuna_setup import Tuna, tuna

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
    "LevelTest",
    "NeverReject",
    "SequentialTest",
    "Tuna",
    "TunaTest",
    "UnboundTest",
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
