"""The two-dimensional densities of the paper's Figure 2, Dist1 and Dist2."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from amagold.target import Density


def dist1_log_density(z: Any) -> Any:
    """N(z_1; z_2^2 / 4, 1) N(z_2; 0, 4): a banana. Up to a constant, for one point or an array of
    them.
    """
    return -0.5 * (z[..., 0] - 0.25 * z[..., 1] ** 2) ** 2 - 0.125 * z[..., 1] ** 2


def dist2_log_density(z: Any) -> Any:
    """Half N(0, [[2, 1.8], [1.8, 2]]), half N(0, [[2, -1.8], [-1.8, 2]]): a cross. Up to a
    constant.

    Both covariances have the determinant 0.76, so -(1/2) z' S^-1 z = (-z_1^2 - z_2^2 +- 1.8 z_1
    z_2) / 0.76.
    """
    tilt = 1.8 * z[..., 0] * z[..., 1] / 0.76
    return -(z[..., 0] ** 2 + z[..., 1] ** 2) / 0.76 + jnp.logaddexp(tilt, -tilt)


def dist1() -> Density:
    return Density(dist1_log_density, init=np.zeros(2, np.float32))


def dist2() -> Density:
    return Density(dist2_log_density, init=np.zeros(2, np.float32))
