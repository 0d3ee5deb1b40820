"""Several processes that run one program: what they tell each other, and what is said when one of
them is lost. The work itself they share by JAX's collectives.
"""

from amagold.processes._agreement import agree
from amagold.processes._exchange import PeerError, share
from amagold.processes._watch import watched

__all__ = ["PeerError", "agree", "share", "watched"]
