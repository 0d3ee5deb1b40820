"""What Stirling's formula leaves of the logarithm of the gamma function, from logarithms alone, so
that its derivatives are as quick and as right as its values.
"""

import jax
import jax.numpy as jnp

NUM_STEPS = 5  # upwards, to where three terms of the series are right to 1e-8


def stirling_remainder(x: jax.Array) -> jax.Array:
    """S(x) = log Gamma(x) - ((x - 1/2) log x - x + log(2 pi) / 2), for x > 0."""
    found = jnp.zeros_like(x)
    # S(x) - S(x + 1) = (x + 1/2) log(1 + 1/x) - 1
    for _ in range(NUM_STEPS):
        found += (x + 0.5) * jnp.log1p(1.0 / x) - 1.0
        x = x + 1.0
    # 1 / (12 x) - 1 / (360 x^3) + 1 / (1260 x^5)
    square = 1.0 / (x * x)
    return found + (1.0 / 12.0 - square * (1.0 / 360.0 - square / 1260.0)) / x
