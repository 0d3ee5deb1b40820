"""SGLD's step: a gradient step with noise, as a proposal with densities.

| symbol | name |
|---|---|
| theta | position |
| epsilon | step_size |
| M, M^-1 = W^T W | mass |
"""

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.core.randomness import normal_like
from amagold.core.shapes import Form, Number, Position, Scalar
from amagold.trajectory._mass_matrix import Mass
from amagold.trajectory._phase import Gradient


@trees.record()
class Langevin:
    """P(x, y; zeta) = N(y; x - (epsilon^2 / 2) M^-1 grad U~(x), epsilon^2 M^-1): one leapfrog step
    with a fresh momentum.
    """

    step_size: Number
    mass: Mass

    draw = staticmethod(normal_like)

    def check(self, position: Form) -> None:
        self.mass.check(position)

    def propose(self, position: Position, noise: Position, gradient: Gradient) -> Position:
        # theta' = theta + epsilon W^T (xi - (epsilon / 2) W g)
        force = self.mass.force(gradient(position))
        direction = jax.tree.map(
            lambda error, push: (error - 0.5 * self.step_size * push).astype(push.dtype),
            noise,
            force,
        )
        velocity = self.mass.velocity(direction)
        return jax.tree.map(
            lambda at, by: (at + self.step_size * by).astype(at.dtype), position, velocity
        )

    def log_density(self, origin: Position, destination: Position, gradient: Gradient) -> Scalar:
        # log N(y; mean(x), epsilon^2 M^-1) = -(1/2) |xi|^2 + constant, xi = L^T (y - x) / epsilon +
        # (epsilon / 2) W g
        force = self.mass.force(gradient(origin))
        distance = self.mass.unwhiten(jax.tree.map(jnp.subtract, destination, origin))
        error = jax.tree.map(
            lambda by, push: by / self.step_size + 0.5 * self.step_size * push, distance, force
        )
        return -0.5 * trees.dot(error, error)
