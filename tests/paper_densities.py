"""The two-dimensional densities of the paper's appendix."""

import jax.numpy as jnp
import numpy as np
from jax.scipy.special import logsumexp

import amagold


def dist1():
    """N(z_1; z_2^2 / 4, 1) N(z_2; 0, 4)."""
    return amagold.Density(lambda z: -0.5 * (z[0] - 0.25 * z[1] ** 2) ** 2 - 0.125 * z[1] ** 2, init=np.zeros(2))


def dist2():
    """Half N(0, [[2, 1.8], [1.8, 2]]), half N(0, [[2, -1.8], [-1.8, 2]])."""
    precisions = np.stack([np.linalg.inv([[2.0, sign * 1.8], [sign * 1.8, 2.0]]) for sign in (1.0, -1.0)]).astype(np.float32)
    return amagold.Density(lambda z: logsumexp(-0.5 * jnp.einsum("i,kij,j->k", z, precisions, z)), init=np.zeros(2))
