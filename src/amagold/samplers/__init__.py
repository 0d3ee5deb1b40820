"""The published algorithms, each assembled in one short file from targets, gradients, trajectories
and tests.
"""

from amagold.samplers._amagold import amagold
from amagold.samplers._amortized import Info, Randomness, Sampler, State, amortized
from amagold.samplers._block_sampler import BlockSampler
from amagold.samplers._compose import blocks
from amagold.samplers._cyclical import cyclical
from amagold.samplers._from_sgd import from_sgd
from amagold.samplers._ggmc import ggmc
from amagold.samplers._hmc import hmc
from amagold.samplers._kernel import Kernel
from amagold.samplers._l2mc import l2mc
from amagold.samplers._psgld import psgld
from amagold.samplers._sghmc import sghmc
from amagold.samplers._sgld import sgld
from amagold.samplers._sgnht import sgnht
from amagold.samplers._sms_ubu import sms_ubu

__all__ = [
    "BlockSampler",
    "Info",
    "Kernel",
    "Randomness",
    "Sampler",
    "State",
    "amagold",
    "amortized",
    "blocks",
    "cyclical",
    "from_sgd",
    "ggmc",
    "hmc",
    "l2mc",
    "psgld",
    "sghmc",
    "sgld",
    "sgnht",
    "sms_ubu",
]
