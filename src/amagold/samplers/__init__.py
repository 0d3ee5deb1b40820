"""The published algorithms, each assembled in one short file from targets, gradients, trajectories
and tests.
"""

from amagold.samplers.amagold import amagold
from amagold.samplers.amortized import Info, Randomness, Sampler, State, amortized
from amagold.samplers.from_sgd import from_sgd
from amagold.samplers.hmc import hmc
from amagold.samplers.l2mc import l2mc
from amagold.samplers.sghmc import sghmc
from amagold.samplers.sgld import sgld

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
