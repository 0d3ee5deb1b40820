# The public names of this room: `__init__.py` reads them, and so do type checkers.

from ._amagold import amagold as amagold
from ._amortized import (
    Info as Info,
    Randomness as Randomness,
    Sampler as Sampler,
    State as State,
    amortized as amortized,
)
from ._block_sampler import BlockSampler as BlockSampler
from ._compose import blocks as blocks
from ._cyclical import cyclical as cyclical
from ._from_sgd import from_sgd as from_sgd
from ._ggmc import ggmc as ggmc
from ._hmc import hmc as hmc
from ._kernel import Kernel as Kernel
from ._l2mc import l2mc as l2mc
from ._psgld import psgld as psgld
from ._sghmc import sghmc as sghmc
from ._sgld import sgld as sgld
from ._sgnht import sgnht as sgnht
from ._sms_ubu import sms_ubu as sms_ubu
