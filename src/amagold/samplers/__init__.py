"""The published algorithms, each assembled in one short file from targets, gradients, trajectories
and tests.
"""

from amagold.samplers._amagold import amagold
from amagold.samplers._amortized import Info, Randomness, Sampler, State, amortized
from amagold.samplers._from_sgd import from_sgd
from amagold.samplers._hmc import hmc
from amagold.samplers._l2mc import l2mc
from amagold.samplers._sghmc import sghmc
from amagold.samplers._sgld import sgld

__all__ = [
    "Info",
    "Randomness",
    "Sampler",
    "State",
    "amagold",
    "amortized",
    "from_sgd",
    "hmc",
    "l2mc",
    "sghmc",
    "sgld",
]
