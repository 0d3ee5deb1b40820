"""Horseshoe priors of some of the coefficients that all rows of a mixed model share.

Given their local scales these are Gaussian, as the prior of the others is.
"""

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.target._horseshoe import Horseshoe, HorseshoeGuide


@trees.record(static=("words", "doubts"))
class ShrunkCoefficients:
    """Of the coefficients theta and of log tau, which the likelihood does not see."""

    horseshoe: Horseshoe
    guide: HorseshoeGuide  # for searches, and what the reference's Gaussian has
    words: tuple[str, ...]
    doubts: tuple[str, ...] = ()  # about the units of its columns

    def __call__(self, theta: jax.Array, log_tau: jax.Array) -> jax.Array:
        return self.horseshoe.log_density(theta, log_tau)

    def smooth(self, theta: jax.Array, log_tau: jax.Array) -> jax.Array:
        return self.guide(jnp.concatenate([theta, log_tau]))
