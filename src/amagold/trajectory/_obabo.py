"""GGMC's step (Garriga-Alonso and Fortuin, 2021): OBABO, with friction and noise at either end.

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
from amagold.core.randomness import normal_like
from amagold.core.shapes import Form, Number, Position, Scalar
from amagold.trajectory._free_motion import renew, two_normals
from amagold.trajectory._kick import kick
from amagold.trajectory._mass_matrix import Mass
from amagold.trajectory._phase import Gradient, Phase, Symmetry, has_friction


@trees.record()
class Obabo:
    """Friction and noise, half a kick, a drift, half a kick, friction and noise. Skew-reversible
    under negation of the momentum; one minibatch gives both gradients.
    """

    step_size: Number
    friction: Number
    mass: Mass

    symmetry: ClassVar[Symmetry] = "skew-reversible"
    draw = staticmethod(two_normals)
    draw_momentum = staticmethod(normal_like)

    @property
    def refreshes_momentum(self) -> bool:
        return has_friction(self.friction)

    def check(self, position: Form) -> None:
        self.mass.check(position)

    def reverse(self, phase: Phase) -> Phase:
        return Phase(phase.position, trees.negate(phase.momentum))

    def step(
        self, phase: Phase, noise: tuple[Position, Position], gradient: Gradient
    ) -> tuple[Phase, Scalar]:
        decay = self.step_size * self.friction
        # O: r <- exp(-b) r + N(0, (1 - exp(-2 b)) M), which does no work
        momentum = renew(phase.momentum, noise[0], decay)
        # B: r <- r - (epsilon / 2) grad U~_t(theta), and its work (epsilon / 4) g^T M^-1 (r + r*)
        momentum, work = self._half_kick(momentum, gradient(phase.position))
        # A: theta* = theta + epsilon M^-1 r
        velocity = self.mass.velocity(momentum)
        position = jax.tree.map(
            lambda at, by: (at + self.step_size * by).astype(at.dtype), phase.position, velocity
        )
        # B and O, in the other order, by the gradient of the same minibatch at theta*
        momentum, more = self._half_kick(momentum, gradient(position))
        return Phase(position, renew(momentum, noise[1], decay)), work + more

    def _half_kick(self, momentum: Position, slope: Position) -> tuple[Position, Scalar]:
        return kick(momentum, self.mass.force(slope), (), 0.5 * self.step_size, None)
