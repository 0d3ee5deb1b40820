"""SGNHT's step (Ding et al., 2014), split symmetrically, so that a test may follow: a thermostat
turns the friction up while the momentum is too hot, and down while it is too cold.

| symbol | name |
|---|---|
| theta | position |
| r = M^(1/2) p | p: the standardised momentum, N(0, I), of d numbers |
| xi - A = z / sqrt(mu) | z: the thermostat, N(0, 1); what the friction exceeds A = 2 beta by |
| mu = d inertia | what the thermostat is slow by |
| epsilon, beta | step_size, friction |
| M^-1 = W^T W | mass |

Under exp(-U - |p|^2 / 2 - z^2 / 2) time is turned around by (theta, p, z) -> (theta, -p, -z). Each
part of the step comes back under it; damping changes volume, by exp(-d (xi - A) t).
"""

from typing import ClassVar

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.core.randomness import normal_like
from amagold.core.shapes import Form, Number, Position, RandomKey, Scalar
from amagold.trajectory._kick import kick
from amagold.trajectory._mass_matrix import Mass
from amagold.trajectory._phase import Gradient, Phase, Symmetry, Thermostatted, has_friction


@trees.record()
class NoseHoover:
    """Half a drift, heat and damping, one kick with friction and noise, damping and heat, half a
    drift. Skew-reversible under negation of the momentum and the thermostat.
    """

    step_size: Number
    friction: Number
    mass: Mass
    inertia: Number = 1.0

    symmetry: ClassVar[Symmetry] = "skew-reversible"
    draw = staticmethod(normal_like)

    @property
    def refreshes_momentum(self) -> bool:
        return has_friction(self.friction)

    def check(self, position: Form) -> None:
        self.mass.check(position)

    def draw_momentum(
        self, key: RandomKey, position: Form, shape: tuple[int, ...] = ()
    ) -> Thermostatted:
        momentum_key, thermostat_key = jax.random.split(key)
        momentum = normal_like(momentum_key, position, shape)
        kind = jnp.result_type(*jax.tree.leaves(momentum))
        return Thermostatted(momentum, jax.random.normal(thermostat_key, shape, kind))

    def reverse(self, phase: Phase) -> Phase:
        return Phase(phase.position, Thermostatted(*trees.negate(tuple(phase.momentum))))

    def step(self, phase: Phase, noise: Position, gradient: Gradient) -> tuple[Phase, Scalar]:
        assert isinstance(phase.momentum, Thermostatted)
        momentum, thermostat = phase.momentum
        middle = self._drift(phase.position, momentum)
        thermostat, heat = self._heat(momentum, thermostat)
        momentum, damping = self._damp(momentum, thermostat)
        momentum, kicked = kick(
            momentum, self.mass.force(gradient(middle)), noise, self.step_size, self.friction
        )
        momentum, damping_again = self._damp(momentum, thermostat)
        thermostat, heat_again = self._heat(momentum, thermostat)
        end = Phase(self._drift(middle, momentum), Thermostatted(momentum, thermostat))
        return end, heat + damping + kicked + damping_again + heat_again

    def _heat(self, momentum: Position, thermostat: Scalar) -> tuple[Scalar, Scalar]:
        # dz = (|p|^2 - d) / sqrt(mu) dt for a time epsilon / 2
        size = trees.size(momentum)
        excess = trees.dot(momentum, momentum) - size
        by = 0.5 * self.step_size * excess / jnp.sqrt(self.inertia * size)
        after = (thermostat + by).astype(thermostat.dtype)
        # log phi(z*) - log phi(z) = (z^2 - z*^2) / 2
        return after, 0.5 * (thermostat - after) * (thermostat + after)

    def _damp(self, momentum: Position, thermostat: Scalar) -> tuple[Position, Scalar]:
        # dp = -(xi - A) p dt for a time epsilon / 2: p* = exp(-a) p
        size = trees.size(momentum)
        by = 0.5 * self.step_size * thermostat / jnp.sqrt(self.inertia * size)
        after = jax.tree.map(lambda p: (jnp.exp(-by) * p).astype(p.dtype), momentum)
        # (|p|^2 - |p*|^2) / 2 + log |dp* / dp|, the latter -d a
        return after, -0.5 * jnp.expm1(-2.0 * by) * trees.dot(momentum, momentum) - size * by

    def _drift(self, position: Position, momentum: Position) -> Position:
        velocity = self.mass.velocity(momentum)
        return jax.tree.map(
            lambda at, by: (at + 0.5 * self.step_size * by).astype(at.dtype), position, velocity
        )
