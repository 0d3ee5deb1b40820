"""The one place where a gradient changes a momentum, with friction and noise (the middle of Section
5's step).
"""

from functools import partial

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.core.shapes import Leaf, Number, Position, Scalar


def kick(
    momentum: Position,
    force: Position,
    noise: Position | tuple[()],
    step_size: Number,
    friction: Number | None,
) -> tuple[Position, Scalar]:
    """The momentum after a kick by a force in units of the mass, and the work of it.
    Skew-reversible under negation of the momentum.

    Without friction (None) there is no noise either.
    """
    if friction is None:
        after = jax.tree.map(
            lambda momentum, push: (momentum - step_size * push).astype(momentum.dtype),
            momentum,
            force,
        )
    else:
        after = jax.tree.map(
            partial(_with_friction, step_size=step_size, decay=step_size * friction),
            momentum,
            force,
            noise,
        )
    # rho += (1/2) epsilon grad U~_t(theta_0)^T M^-1 (r + r*)
    return after, 0.5 * step_size * trees.dot(force, trees.add(momentum, after))


def _with_friction(
    momentum: Leaf, push: Leaf, error: Leaf, *, step_size: Number, decay: Number
) -> Leaf:
    # r* = ((1 - b) r - epsilon grad U~_t(theta_0) + N(0, 4 b M)) / (1 + b), b = epsilon beta
    moved = (1.0 - decay) * momentum - step_size * push + 2.0 * jnp.sqrt(decay) * error
    return (moved / (1.0 + decay)).astype(momentum.dtype)
