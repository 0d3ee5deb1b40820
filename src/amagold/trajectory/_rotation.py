"""A step for posteriors that are nearly Gaussian: the Gaussian's own motion is followed exactly,
and the gradient kicks by the rest.

About the centre c and in units of the mass, with q = M^(1/2) (theta - c), the energy is
U = |q|^2 / 2 + V. The motion of |q|^2 / 2 + |p|^2 / 2 turns (q, p) like the hand of a clock; what
is left for the gradient is grad V = W grad U - q, which vanishes for a Gaussian with that mass.
A quarter turn then makes an independent draw, from one gradient.

| symbol | name |
|---|---|
| theta | position |
| q, p | away, momentum: both N(0, I) for the Gaussian |
| h | step_size: the angle of a step |
| beta | friction; None is none, and no noise is drawn for it |
| c | center |
| M, M^-1 = W^T W | mass |
"""

from typing import ClassVar

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.core.randomness import DrawFunction, normal_like
from amagold.core.shapes import Form, Number, Position, Scalar
from amagold.trajectory._kick import kick
from amagold.trajectory._mass_matrix import Mass
from amagold.trajectory._phase import Gradient, Phase, Symmetry, has_friction


@trees.record()
class Rotation:
    """Half a turn, one kick by what the Gaussian leaves of the gradient, half a turn.
    Skew-reversible under negation of the momentum.

    It is exact for every target, centre and mass, like the leapfrog; near-Gaussian ones it crosses
    in fewer steps.
    """

    step_size: Number
    mass: Mass
    center: Position
    friction: Number | None = None

    symmetry: ClassVar[Symmetry] = "skew-reversible"
    draw_momentum = staticmethod(normal_like)

    @property
    def draw(self) -> DrawFunction | None:
        return None if self.friction is None else normal_like

    @property
    def refreshes_momentum(self) -> bool:
        return has_friction(self.friction)

    def check(self, position: Form) -> None:
        given, wanted = (jax.tree.map(jnp.shape, tree) for tree in (self.center, position))
        if jax.tree.structure(self.center) != jax.tree.structure(position) or given != wanted:
            raise ValueError(
                f"center must be like the position, {wanted}, got {given}; give the mode or "
                "another position of the target"
            )
        self.mass.check(position)

    def reverse(self, phase: Phase) -> Phase:
        return Phase(phase.position, trees.negate(phase.momentum))

    def step(
        self, phase: Phase, noise: Position | tuple[()], gradient: Gradient
    ) -> tuple[Phase, Scalar]:
        # q = M^(1/2) (theta - c)
        away = self.mass.unwhiten(jax.tree.map(jnp.subtract, phase.position, self.center))
        middle, before, turned = self._turn(away, phase.momentum)
        # grad V~_t = W grad U~_t - q
        rest = jax.tree.map(jnp.subtract, self.mass.force(gradient(self._place(middle))), middle)
        after, work = kick(before, rest, noise, self.step_size, self.friction)
        end, momentum, turned_again = self._turn(middle, after)
        return Phase(self._place(end), momentum), turned + work + turned_again

    def _turn(self, away: Position, momentum: Position) -> tuple[Position, Position, Scalar]:
        """Half the step's angle, and its work: what the momentum's density changes by."""
        cosine, sine = jnp.cos(0.5 * self.step_size), jnp.sin(0.5 * self.step_size)
        # (q, p) -> (q cos + p sin, p cos - q sin)
        turned = jax.tree.map(lambda q, p: (cosine * q + sine * p).astype(q.dtype), away, momentum)
        slowed = jax.tree.map(lambda q, p: (cosine * p - sine * q).astype(p.dtype), away, momentum)
        # log phi(p*) - log phi(p) = (|p|^2 - |p*|^2) / 2, as a product so that large squares do not
        # cancel
        work = 0.5 * trees.dot(
            jax.tree.map(jnp.subtract, momentum, slowed), trees.add(momentum, slowed)
        )
        return turned, slowed, work

    def _place(self, away: Position) -> Position:
        # theta = c + W^T q
        return jax.tree.map(
            lambda at, by: (at + by).astype(at.dtype), self.center, self.mass.velocity(away)
        )
