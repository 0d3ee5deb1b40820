"""Log likelihoods in float64, for energies whose float32 values round by more than is promised of their sum.

A sum in float64 cannot mend terms that were rounded before: with values of some hundreds, ten million of them are off by 0.01.
How much a likelihood rounds is measured, on some of the examples, because its inner values are not seen from outside.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np

from amagold import trees
from amagold.compiling import ONCE, jit
from amagold.target import Posterior

PROMISE = 1e-3  # what an energy difference may be off by
SAMPLE = 2**16  # examples that the rounding is measured on


def widen(tree: trees.PyTree) -> trees.PyTree:
    """Every floating-point array in float64, where that is switched on."""
    return jax.tree.map(lambda leaf: leaf.astype(jnp.float64) if jnp.issubdtype(jnp.result_type(leaf), jnp.floating) else leaf, tree)


def wide_log_likelihoods(target: Posterior, position: trees.PyTree, rows: trees.PyTree) -> jax.Array:
    """One log likelihood for each of the rows, in float64 from the float32 numbers as they are."""
    with jax.enable_x64(True):
        return target.log_likelihoods(widen(position), widen(rows)).astype(jnp.float64)


def can_widen(target: Posterior, position: trees.PyTree) -> bool:
    """Whether the user's functions take float64: some fix their types, and are then evaluated in float32 as they are."""
    try:
        with jax.enable_x64(True):
            rows = jax.tree.map(lambda leaf: leaf[:1], target.data)
            jax.eval_shape(lambda at, rows: wide_log_likelihoods(target, at, rows), position, rows)
            jax.eval_shape(lambda at: target.log_prior(widen(at)), position)
    except (TypeError, ValueError):
        return False
    return True


def rounding_of(target: Posterior, position: trees.PyTree) -> float:
    """The standard deviation of what float32 rounds a difference of two energies by, near a position."""
    numbers = np.linspace(0, target.num_examples - 1, min(SAMPLE, target.num_examples)).astype(int)
    rows = jax.tree.map(lambda leaf: leaf[numbers], target.data)
    # the roundings of the examples are independent, and those of the two energies too
    return math.sqrt(2.0 * target.num_examples) * float(_rounding_of_one(target, position, rows))


def needs_double(target: Posterior, position: trees.PyTree) -> bool:
    """Whether float32 values would break the promise, and float64 ones keep it; three standard deviations count."""
    return can_widen(target, position) and not 3.0 * rounding_of(target, position) <= PROMISE


@jit(ONCE)
def _rounding_of_one(target: Posterior, position: trees.PyTree, rows: trees.PyTree) -> jax.Array:
    narrow = target.log_likelihoods(position, rows)
    wide = wide_log_likelihoods(target, position, rows)
    with jax.enable_x64(True):
        # what all examples are off by alike is the same at both ends
        return jnp.std(narrow.astype(jnp.float64) - wide).astype(jnp.float32)
