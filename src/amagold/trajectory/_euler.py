"""SGHMC's step, exactly as Algorithm 1 of the paper has it.

| symbol | name |
|---|---|
| theta | position |
| r = M^(1/2) p | p: the standardised momentum, N(0, I) |
| epsilon | step_size |
| beta, beta-hat | friction, noise_estimate |
"""

from typing import ClassVar

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.core.randomness import normal_like
from amagold.core.shapes import Form, Leaf, Number, Position, Scalar
from amagold.trajectory._mass_matrix import Mass
from amagold.trajectory._phase import Gradient, Phase, Symmetry, has_friction


@trees.record()
class Euler:
    """A whole drift, then a whole kick. Not time-symmetric: no work is accounted, and no test can
    follow.
    """

    step_size: Number
    friction: Number
    mass: Mass
    noise_estimate: Number = 0.0

    symmetry: ClassVar[Symmetry] = "none"
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
        decay = self.step_size * self.friction
        # eta_t ~ N(0, 4 epsilon (beta - beta-hat) M)
        noise_scale = 2.0 * jnp.sqrt(self.step_size * (self.friction - self.noise_estimate))
        # theta_t = theta_{t-1} + epsilon M^-1 r_{t-1/2}
        velocity = self.mass.velocity(phase.momentum)
        position = jax.tree.map(
            lambda at, by: (at + self.step_size * by).astype(at.dtype), phase.position, velocity
        )
        force = self.mass.force(gradient(position))

        # r_{t+1/2} = r_{t-1/2} - epsilon grad U~_t(theta_t) - 2 epsilon beta r_{t-1/2} + eta_t
        def kick(momentum: Leaf, push: Leaf, error: Leaf) -> Leaf:
            return (
                momentum - self.step_size * push - 2.0 * decay * momentum + noise_scale * error
            ).astype(momentum.dtype)

        return Phase(position, jax.tree.map(kick, phase.momentum, force, noise)), jnp.float32(0.0)
