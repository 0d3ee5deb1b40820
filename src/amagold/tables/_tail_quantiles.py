"""Lower and upper quantiles of many rows of draws, by counting.

Sorting a thousand draws costs ten times the product that makes them. Counting how many lie below a
threshold costs a tenth of it, so a few thresholds are tried: first where a Gaussian has its
quantile, then where the counts before point. What is left to find is far below the Monte Carlo
error of a quantile; rows for which it is not are told, and sorted by whoever asks.
"""

from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from scipy import special

FEW = 200  # draws, up to which sorting is cheap
ROUNDS = 3  # thresholds that are tried for each tail
NEAR = 0.01  # share of the draws by which the nearest threshold may miss its rank


class Tails(NamedTuple):
    """Of every row: the quantiles, and whether they were found."""

    lower: jax.Array
    upper: jax.Array
    is_found: jax.Array


def tails(draws: jax.Array, mean: jax.Array, interval: float) -> Tails:
    """The quantiles between which the interval lies, of draws (rows, draws) with known means."""
    share = 0.5 * (1.0 - interval)
    if draws.shape[1] <= FEW:
        found = jnp.quantile(draws, jnp.asarray([share, 1.0 - share]), axis=1)
        return Tails(found[0], found[1], jnp.ones(draws.shape[0], bool))
    ones = jnp.ones(draws.shape[1], draws.dtype)
    # as products with ones, which XLA does in wide registers
    spread = jnp.sqrt(jnp.dot((draws - mean[:, None]) ** 2, ones) / draws.shape[1])
    # rounding alone is no spread
    is_constant = spread <= 1e-6 * jnp.abs(mean)
    lower, is_lower = _quantile(draws, ones, mean, spread, share)
    upper, is_upper = _quantile(draws, ones, mean, spread, 1.0 - share)
    return Tails(
        jnp.where(is_constant, mean, lower),
        jnp.where(is_constant, mean, upper),
        is_constant | (is_lower & is_upper),
    )


def _quantile(
    draws: jax.Array, ones: jax.Array, mean: jax.Array, spread: jax.Array, share: float
) -> tuple[jax.Array, jax.Array]:
    """One quantile of every row, and whether a threshold came near it."""
    number = draws.shape[1]
    # how many draws lie below NumPy's quantile, a draw counting half at its own place
    rank = share * (number - 1) + 0.5
    at = float(special.ndtri(share))
    density = number * np.exp(-0.5 * at**2) / np.sqrt(2.0 * np.pi)  # draws per spread
    low, high = jnp.full_like(mean, -jnp.inf), jnp.full_like(mean, jnp.inf)
    below_low, below_high = jnp.zeros_like(mean), jnp.full_like(mean, number)
    threshold = mean + at * spread
    for _ in range(ROUNDS):
        below = jnp.dot(jnp.where(draws < threshold[:, None], 1.0, 0.0), ones)
        is_low = below < rank
        low, below_low = jnp.where(is_low, threshold, low), jnp.where(is_low, below, below_low)
        high, below_high = jnp.where(is_low, high, threshold), jnp.where(is_low, below_high, below)
        # between two thresholds as the counts say, never at one of them again
        part = jnp.clip((rank - below_low) / (below_high - below_low), 0.05, 0.95)
        between = low + (high - low) * part
        # beyond the only one as far as a Gaussian says, and a little more
        up = 1.15 * spread * jnp.clip((rank - below_low) / density, 0.02, 1.0)
        down = 1.15 * spread * jnp.clip((below_high - rank) / density, 0.02, 1.0)
        beyond = jnp.where(jnp.isinf(high), low + up, high - down)
        threshold = jnp.where(jnp.isinf(low) | jnp.isinf(high), beyond, between)
    missed = jnp.minimum(
        jnp.where(jnp.isinf(low), number, rank - below_low),
        jnp.where(jnp.isinf(high), number, below_high - rank),
    )
    return threshold, missed <= NEAR * number
