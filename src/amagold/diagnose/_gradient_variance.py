"""How noisy a gradient estimator is, in the units in which it costs acceptance."""

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.gradients import GradientEstimator
from amagold.target import Target
from amagold.trajectory._mass_matrix import as_mass


def gradient_variance(
    target: Target,
    gradient: GradientEstimator,
    position: trees.PyTree,
    key: jax.Array,
    mass: trees.PyTree = 1.0,
    num_draws: int = 256,
) -> jax.Array:
    """V^2 = tr(M^-1 Cov g) at a position, estimated without bias from `num_draws` independent
    gradients.
    """
    position = trees.as_position(position)
    whitening = as_mass(mass)

    def one(key: jax.Array) -> jax.Array:
        batch_key, noise_key = jax.random.split(key)
        rows = jax.tree.map(
            lambda leaf: leaf[0], gradient.gather(target, gradient.draw(batch_key, target, 1))
        )
        noise = () if gradient.draw_noise is None else gradient.draw_noise(noise_key, position)
        return trees.flatten(whitening.force(gradient.estimate(target, position, rows, noise)))

    forces = jax.lax.map(one, jax.random.split(key, num_draws))
    return jnp.var(forces, axis=0, ddof=1).sum()
