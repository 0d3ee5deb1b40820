"""The one place where a gradient changes a momentum, with friction and noise (the middle of Section 5's step)."""

import jax
import jax.numpy as jnp

from amagold import trees


def kick(
    momentum: trees.PyTree, force: trees.PyTree, noise: trees.PyTree, step_size: jax.Array | float, friction: jax.Array | float
) -> tuple[trees.PyTree, jax.Array]:
    """The momentum after a kick by a force in units of the mass, and the work of it. Skew-reversible under negation of the momentum."""
    # b = epsilon beta
    decay = step_size * friction

    # r* = ((1 - b) r - epsilon grad U~_t(theta_0) + N(0, 4 b M)) / (1 + b)
    def moved(momentum: jax.Array, push: jax.Array, error: jax.Array) -> jax.Array:
        kicked = (1.0 - decay) * momentum - step_size * push + 2.0 * jnp.sqrt(decay) * error
        return (kicked / (1.0 + decay)).astype(momentum.dtype)

    after = jax.tree.map(moved, momentum, force, noise)
    # rho += (1/2) epsilon grad U~_t(theta_0)^T M^-1 (r + r*)
    return after, 0.5 * step_size * trees.dot(force, trees.add(momentum, after))


def kick_without_friction(momentum: trees.PyTree, force: trees.PyTree, step_size: jax.Array | float) -> tuple[trees.PyTree, jax.Array]:
    """The same for b = 0, which needs no noise."""
    after = jax.tree.map(lambda momentum, push: (momentum - step_size * push).astype(momentum.dtype), momentum, force)
    return after, 0.5 * step_size * trees.dot(force, trees.add(momentum, after))
