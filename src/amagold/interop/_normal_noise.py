"""Normal noise whose scale is a parameter: how fast its likelihood can change."""

import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp

from amagold.target import LinearBounds


def largest_third(z: jax.Array, example: Any) -> jax.Array:
    """w (2.31 + 4.62 R + 4 R^2) at the reference, with R = max(|r|, 1)."""
    reach = jnp.maximum(jnp.abs(example.response - z[0]), 1.0)
    return jnp.exp(-2.0 * z[1]) * (2.31 + 4.62 * reach + 4.0 * reach**2)


@dataclass(frozen=True)
class NormalNoise:
    """log p(y | z, k) = -(y - z)^2 exp(-2 k) / 2 - k, up to a constant; k is the log of the scale.

    Units should be such that the scale is about one.
    """

    def __call__(self, z: jax.Array, example: Any) -> jax.Array:
        return -0.5 * ((example.response - z[0]) * jnp.exp(-z[1])) ** 2 - z[1]

    def bounds(self, predictor: Any) -> LinearBounds:
        """With r = y - z and w = exp(-2 k), along a unit vector (a, b) of (z, k)

        second: -w (a^2 + 4 a b r + 2 b^2 r^2), at most w (1 + 2 |r| + 2 r^2);
        third: w (6 a^2 b + 12 a b^2 r + 4 b^3 r^2), at most w (2.31 + 4.62 |r| + 4 r^2), because
          a^2 |b| and |a| b^2 are at most 2 / (3 sqrt 3) on the unit circle.

        The second is never the larger. Away from the reference, by d in z and e in k, w grows at
        most by exp(2 |e|), and |r| + |d| <= R exp(|d|) with R = max(|r|, 1): the slope of
        log(R + |d|) is at most 1. So all grow at most by exp(2 |e| + 2 |d|), which is at most
        exp(2 sqrt 2 |(d, e)|). The first has no bound.
        """
        return LinearBounds(
            predictor, self, (math.inf, 1.0, 1.0), scale=largest_third, growth=2.0 * 2.0**0.5
        )
