"""AMAGOLD's proposal: the time-symmetric stochastic leapfrog step (Section 5 of the paper).

| symbol | name |
|---|---|
| theta | position |
| r = M^(1/2) p | p: the standardised momentum, N(0, I) |
| epsilon | step_size |
| beta | friction |
| M (sigma^2 I in the paper), M^-1 = W^T W | mass |
| eta = 2 sqrt(epsilon beta) M^(1/2) xi | xi: noise, N(0, I) |
| rho | the sum of work |
"""

from typing import ClassVar

import jax

from amagold.core import trees
from amagold.core.randomness import normal_like
from amagold.core.shapes import Form, Number, Position, Scalar
from amagold.trajectory._kick import kick
from amagold.trajectory._mass_matrix import Mass
from amagold.trajectory._phase import Gradient, Phase, Symmetry, has_friction


@trees.record()
class Leapfrog:
    """Half drift, one kick with friction and noise, half drift. Skew-reversible under negation of
    the momentum.
    """

    step_size: Number
    friction: Number
    mass: Mass

    symmetry: ClassVar[Symmetry] = "skew-reversible"
    draw = staticmethod(normal_like)
    draw_momentum = staticmethod(normal_like)

    @property
    def refreshes_momentum(self) -> bool:
        return has_friction(self.friction)

    def check(self, position: Form) -> None:
        self.mass.check(position)

    def reverse(self, phase: Phase) -> Phase:
        return Phase(phase.position, trees.negate(phase.momentum))

    def step(self, phase: Phase, noise: Position, gradient: Gradient) -> tuple[Phase, Scalar]:
        # theta_0 = theta + (1/2) epsilon M^-1 r
        middle = self._drift(phase.position, phase.momentum)
        # W grad U~_t(theta_0): this one gradient feeds the update and the work
        momentum, work = kick(
            phase.momentum, self.mass.force(gradient(middle)), noise, self.step_size, self.friction
        )
        # theta* = theta_0 + (1/2) epsilon M^-1 r*
        return Phase(self._drift(middle, momentum), momentum), work

    def _drift(self, position: Position, momentum: Position) -> Position:
        velocity = self.mass.velocity(momentum)
        return jax.tree.map(
            lambda at, by: (at + 0.5 * self.step_size * by).astype(at.dtype), position, velocity
        )
