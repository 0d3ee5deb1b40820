"""What the exact test by levels must know beforehand."""

import dataclasses
import math

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.acceptance._arrival_table import arrival_table
from amagold.acceptance._level_moves import NumbersBound, centring_of
from amagold.acceptance._level_rows import level_rows
from amagold.acceptance._level_test import NUM_WORDS, LevelTest
from amagold.core import trees
from amagold.core.array_types import Float
from amagold.core.compiling import ONCE, jit
from amagold.core.freed_memory import give_back
from amagold.core.shapes import RandomKey, Scalar
from amagold.data import InMemory
from amagold.mode._derivatives import whole_hessian
from amagold.mode._rare_rows import rare_rows
from amagold.mode._reference import Reference
from amagold.mode._row_bounds import Norm, bound_sums
from amagold.target import Posterior
from amagold.target._linear_bounds import LinearBounds, SparsePredictor

NUM_PAIRS, NUM_ROWS = 32, 512  # that the typical share of the bounds is measured from
# candidates looked at together, at least and at most
SMALLEST_BLOCK, LARGEST_BLOCK = 16, 256
# of log a, that the draws may bring where a test looks at many: more rows for less would cost more
# than they bring
NOISE = 0.25


def has_levels(target: Posterior, bounds: LinearBounds, order: int) -> bool:
    """Whether rows can be drawn by their levels."""
    return (
        order == 2
        and isinstance(bounds.predictor, SparsePredictor)
        and isinstance(target.examples, InMemory)
        and len(bounds.predictor.num_levels(target.example)) > 0
    )


def level_test(
    target: Posterior, bounds: LinearBounds, reference: Reference, most: float | None
) -> LevelTest:
    """The test about a reference: two walks over the data."""
    predictor = bounds.predictor
    assert isinstance(predictor, SparsePredictor)
    position = reference.position
    hessian = whole_hessian(target, position, reference.hessian)
    levels = predictor.num_levels(target.example)
    num_numbers = trees.size(position) - sum(levels) + len(levels) - predictor.num_shared
    try:
        norm = Norm.of_matrix(hessian)
        centring = centring_of(hessian, num_numbers, levels)
    except np.linalg.LinAlgError:
        raise ValueError(
            "center must be a mode for acceptance.tuna, but the energy does not curve upwards "
            "there; give another"
        ) from None
    of_numbers = NumbersBound(bounds, position, centring)
    sums = bound_sums(target, position, of_numbers)
    test = LevelTest(
        block_size=SMALLEST_BLOCK,
        bounds=bounds,
        reference=reference,
        centring=centring,
        levels=level_rows(target, bounds, position),
        table=arrival_table(sums, of_numbers, target.num_examples),
        largest=sums.largest_norm,
        spread=jnp.float32(0.0),
        noise=jnp.float32(NOISE),
        typical=jnp.float32(0.0),
        most=jnp.float32(target.num_examples if most is None else most),
        rare=rare_rows(target, bounds, position),
    )
    give_back()  # copies of all levels, several times over
    return _measured(target, test, norm)


def _measured(target: Posterior, test: LevelTest, norm: Norm) -> LevelTest:
    """The test with how many examples it should look at."""
    # kappa = r2 L / v, where r2 is the mean square of D_i / b_i and L the rate: the noise of log a
    # then has variance v
    share, rate = (
        np.asarray(part, np.float64) for part in _typical(target, test, norm.unwhitening)
    )
    spread = float(share) / NOISE
    needed = np.minimum(np.maximum(1.0, spread * rate) * rate, float(test.most))
    typical = float(np.mean(needed))
    noise = float(np.mean(share * rate / np.maximum(1.0, spread * rate)))
    block = 2 ** round(math.log2(max(1.0, typical)))
    return dataclasses.replace(
        test,
        spread=jnp.float32(spread),
        typical=jnp.float32(typical),
        noise=jnp.float32(noise),
        block_size=min(LARGEST_BLOCK, max(SMALLEST_BLOCK, block)),
    )


@jit(ONCE)
def _typical(
    target: Posterior, test: LevelTest, unwhitening: Array
) -> tuple[Scalar, Float[Array, " pairs"]]:
    """r2 over rows drawn by their rates and pairs of positions from the Laplace approximation, and
    the rates.
    """
    like = test.reference.position

    def one(key: RandomKey) -> tuple[Scalar, Scalar]:
        place_key, other_key, word_key = jax.random.split(key, 3)
        here, there = (
            trees.unflatten_like(
                trees.flatten(like) + unwhitening.T @ jax.random.normal(each, (trees.size(like),)),
                like,
            )
            for each in (place_key, other_key)
        )
        rates = test.rates(test.remember(target, here), test.remember(target, there))
        words = jax.random.bits(word_key, (NUM_WORDS, NUM_ROWS), jnp.uint32)
        found = test.candidates(target, rates, words, jnp.ones(NUM_ROWS, bool))
        shares, _ = test.shares(target, here, there, found)
        return jnp.mean(jnp.where(found.arrives, shares**2, 0.0)), rates.total

    shares, rates = jax.lax.map(one, jax.random.split(jax.random.key(0), NUM_PAIRS))
    return jnp.mean(shares), rates
