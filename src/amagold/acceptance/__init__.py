"""The Metropolis-Hastings tests that decide on a trajectory: how each decides, and whether it is exact."""

from amagold.acceptance.base import Acceptance, Decision
from amagold.acceptance.full import FullTest, full
from amagold.acceptance.never_reject import NeverReject, never_reject
from amagold.acceptance.predicted import predicted_acceptance
from amagold.acceptance.tuna import TunaTest
from amagold.acceptance.tuna_setup import Tuna, tuna

__all__ = ["Acceptance", "Decision", "FullTest", "NeverReject", "Tuna", "TunaTest", "full", "never_reject", "predicted_acceptance", "tuna"]
