"""T proposal steps and the work they accumulate.

A proposal moves a `Phase` (position and momentum) by one step and says how much log probability the
step gained or lost:
    work = log [ P(y^, x^; zeta) phi(y) ] - log [ P(x, y; zeta) phi(x) ],
where P is the proposal's density, zeta its minibatch, phi the density of the momentum and ^ the
involution that turns time around. Section 4 of the paper then needs only log pi(y) - log pi(x) +
(sum of work) for an exact test.
"""

from amagold.trajectory._densities import from_densities
from amagold.trajectory._euler import Euler
from amagold.trajectory._langevin import Langevin
from amagold.trajectory._leapfrog import Leapfrog
from amagold.trajectory._nose_hoover import NoseHoover
from amagold.trajectory._obabo import Obabo
from amagold.trajectory._phase import Phase, Proposal, Thermostatted
from amagold.trajectory._preconditioned import Preconditioned, RunningPreconditioner
from amagold.trajectory._random_walk import RandomWalk
from amagold.trajectory._rotation import Rotation
from amagold.trajectory._ubu import Ubu

__all__ = [
    "Euler",
    "Langevin",
    "Leapfrog",
    "NoseHoover",
    "Obabo",
    "Phase",
    "Preconditioned",
    "Proposal",
    "RandomWalk",
    "Rotation",
    "RunningPreconditioner",
    "Thermostatted",
    "Ubu",
    "from_densities",
]
