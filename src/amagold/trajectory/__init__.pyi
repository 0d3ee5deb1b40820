# The public names of this room: `__init__.py` reads them, and so do type checkers.

from ._densities import from_densities as from_densities
from ._euler import Euler as Euler
from ._langevin import Langevin as Langevin
from ._leapfrog import Leapfrog as Leapfrog
from ._nose_hoover import NoseHoover as NoseHoover
from ._obabo import Obabo as Obabo
from ._phase import Phase as Phase, Proposal as Proposal, Thermostatted as Thermostatted
from ._preconditioned import (
    Preconditioned as Preconditioned,
    RunningPreconditioner as RunningPreconditioner,
)
from ._random_walk import RandomWalk as RandomWalk
from ._rotation import Rotation as Rotation
from ._ubu import Ubu as Ubu
