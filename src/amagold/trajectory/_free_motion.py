"""What happens to a momentum and a position where no force acts, with friction and noise: exact,
and reversible with time turned around, so that no work is done.
"""

from functools import partial

import jax
import jax.numpy as jnp

from amagold.core.array_types import PyTree
from amagold.core.randomness import normal_like
from amagold.core.shapes import Form, Leaf, Number, Position, RandomKey, Scalar

# below this b - 2 tanh(b / 2) is taken from its series, because the difference would cancel
SMALL = 0.25


def two_normals(key: RandomKey, position: Form, shape: tuple[int, ...] = ()) -> PyTree:
    """Two independent standard normal trees in the form of the position."""
    first, second = jax.random.split(key)
    return normal_like(first, position, shape), normal_like(second, position, shape)


def renew(momentum: Position, noise: Position, decay: Number) -> Position:
    """p' = exp(-b) p + sqrt(1 - exp(-2 b)) xi: reversible for N(0, I), so that phi(p) P(p, p') is
    the same both ways.
    """
    kept, added = jnp.exp(-decay), jnp.sqrt(-jnp.expm1(-2.0 * decay))
    return jax.tree.map(lambda p, xi: (kept * p + added * xi).astype(p.dtype), momentum, noise)


def drifted_by(
    before: Position, after: Position, noise: Position, decay: Number, duration: Number
) -> Position:
    """What dq = p dt moves q by in a time t in which friction and noise took p to p': given both,
    q' - q ~ N(t (tanh(b/2) / b) (p + p'), 2 t^2 (b - 2 tanh(b/2)) / b^2 I), where exp(-b) of p is
    kept.

    The mean is symmetric in p and p': seen backwards, -p' becomes -p and q' goes back to q.
    """
    along, spread = _shares(jnp.asarray(decay, jnp.result_type(float)))
    return jax.tree.map(
        partial(_drift, along=duration * along, spread=duration * spread), before, after, noise
    )


def _drift(before: Leaf, after: Leaf, error: Leaf, *, along: Number, spread: Number) -> Leaf:
    return (along * (before + after) + spread * error).astype(before.dtype)


def _shares(b: Scalar) -> tuple[Scalar, Scalar]:
    """tanh(b/2) / b and sqrt(2 (b - 2 tanh(b/2))) / b, also for a b near zero."""
    large, square = jnp.maximum(b, SMALL), b * b
    # 2 tanh(b/2) / b = 1 - b^2 / 12 + b^4 / 120 - 17 b^6 / 20160 + 31 b^8 / 362880
    short = 1 / 12 - square * (1 / 120 - square * (17 / 20160 - square * 31 / 362880))
    whole = (1.0 - 2.0 * jnp.tanh(0.5 * large) / large) / large**2
    lost = jnp.where(b < SMALL, short, whole)  # (b - 2 tanh(b/2)) / b^3
    return 0.5 * (1.0 - lost * square), jnp.sqrt(2.0 * b * lost)
