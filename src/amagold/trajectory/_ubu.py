"""SMS-UBU's step (Paulin, Whalley, Chada and Leimkuhler, 2024): half a step of the free motion with
friction and noise, one kick, half a step of the free motion.

| symbol | name |
|---|---|
| theta | position |
| r = M^(1/2) p | p: the standardised momentum, N(0, I) |
| epsilon, beta, b = epsilon beta | step_size, friction, decay |
| M^-1 = W^T W | mass |
"""

from typing import ClassVar

import jax

from amagold.core import trees
from amagold.core.array_types import PyTree
from amagold.core.randomness import normal_like
from amagold.core.shapes import Form, Number, Position, RandomKey, Scalar
from amagold.trajectory._free_motion import drifted_by, renew, two_normals
from amagold.trajectory._kick import kick
from amagold.trajectory._mass_matrix import Mass
from amagold.trajectory._phase import Gradient, Phase, Symmetry, has_friction


def four_normals(key: RandomKey, position: Form, shape: tuple[int, ...] = ()) -> PyTree:
    """For either half of the free motion two: its momentum's, and its position's own."""
    first, second = jax.random.split(key)
    return two_normals(first, position, shape), two_normals(second, position, shape)


@trees.record()
class Ubu:
    """U B U. Skew-reversible under negation of the momentum: the free motion U keeps the flat
    distribution of the position and N(0, I) of the momentum, and looks the same backwards, so that
    all work is the kick's, that of the leapfrog.
    """

    step_size: Number
    friction: Number
    mass: Mass

    symmetry: ClassVar[Symmetry] = "skew-reversible"
    draw = staticmethod(four_normals)
    draw_momentum = staticmethod(normal_like)

    @property
    def refreshes_momentum(self) -> bool:
        return has_friction(self.friction)

    def check(self, position: Form) -> None:
        self.mass.check(position)

    def reverse(self, phase: Phase) -> Phase:
        return Phase(phase.position, trees.negate(phase.momentum))

    def step(
        self,
        phase: Phase,
        noise: tuple[tuple[Position, Position], tuple[Position, Position]],
        gradient: Gradient,
    ) -> tuple[Phase, Scalar]:
        middle = self._free(phase, noise[0])
        # r* = r - epsilon grad U~_t(theta), rho += (1/2) epsilon grad U~_t(theta)^T M^-1 (r + r*)
        momentum, work = kick(
            middle.momentum, self.mass.force(gradient(middle.position)), (), self.step_size, None
        )
        return self._free(Phase(middle.position, momentum), noise[1]), work

    def _free(self, phase: Phase, noise: tuple[Position, Position]) -> Phase:
        """dtheta = M^-1 r dt, dr = -2 beta r dt + 2 sqrt(beta) M^(1/2) dW for a time of half
        epsilon.
        """
        decay = self.step_size * self.friction
        momentum = renew(phase.momentum, noise[0], decay)
        away = drifted_by(phase.momentum, momentum, noise[1], decay, 0.5 * self.step_size)
        position = jax.tree.map(
            lambda at, by: (at + by).astype(at.dtype), phase.position, self.mass.velocity(away)
        )
        return Phase(position, momentum)
