"""Bounds must speak of the likelihood that is sampled: what a test computes from them is compared
with it before the first draw.
"""

import math
from functools import reduce

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.core import trees
from amagold.core.array_types import Float
from amagold.core.compiling import ONCE, jit
from amagold.core.shapes import Example, PerRow, Position, Predictor, Rows, Scalar, Vector
from amagold.mode._row_bounds import slopes
from amagold.target import Posterior
from amagold.target._linear_bounds import LinearBounds

NUM_EXAMPLES = 512  # that are compared, spread evenly over the data
LENGTHS = 0.1, 1.0, 8.0  # how far the predictors are moved, in units of the likelihood's own scale
TOLERANCE = 2e-3  # of a change, that two ways of computing it may differ by
ROUNDING = 256.0 * float(np.finfo(np.float32).eps)  # of the numbers that were added up on the way
TINY = float(np.finfo(np.float32).tiny)

Moves = Float[Array, "moves parameters"]


def check_agreement(target: Posterior, bounds: LinearBounds, center: Position) -> None:
    """Raise unless `outcome(predictor(position, example), example)` is the log likelihood but for a
    constant of each example.

    Constants do not matter to any test. So changes from the center to positions around it are
    compared: of the predictor with its derivative, which must be the same everywhere, and of the
    outcome with the log likelihood.
    """
    # the ready-made models compute their likelihood from the same two functions, and a program is
    # not compiled for nothing
    if getattr(target.log_likelihood, "composition", None) != (bounds.predictor, bounds.outcome):
        compare(target, bounds, center)


def compare(target: Posterior, bounds: LinearBounds, center: Position) -> None:
    """The comparison itself."""
    numbers = np.unique(
        np.linspace(0, target.num_examples - 1, min(NUM_EXAMPLES, target.num_examples)).astype(int)
    )
    rows = target.examples.rows(numbers)
    bent, apart = (
        np.asarray(found)
        for found in _disagreements(target, bounds, trees.as_position(center), rows)
    )
    if bent.max() > 1.0:
        example = numbers[bent.max(axis=0).argmax()]
        raise ValueError(
            "bounds must have a predictor that is linear in the position, up to a constant, but "
            "that of example "
            f"{example} bends; move what is not linear into bounds.outcome, or use "
            "acceptance.full()"
        )
    if apart.max() > 1.0:
        example = numbers[apart.max(axis=0).argmax()]
        raise ValueError(
            "bounds must describe the target's log_likelihood, but for example "
            f"{example} bounds.outcome(bounds.predictor(position, example), example) changes with "
            "the position in another way: the "
            "draws would not be exact; put what is left out (a weight, an offset) into "
            "bounds.outcome, or use acceptance.full()"
        )


@jit(ONCE, "bounds")
def _disagreements(
    target: Posterior, bounds: LinearBounds, center: Position, rows: Rows
) -> tuple[Float[Array, "moves rows"], Float[Array, "moves rows"]]:
    """How far the predictor is from linear, and the outcome from the log likelihood: above one is
    too far, by (position, example).

    A position outside the domain, or a likelihood that is not finite there, says nothing.
    """
    flat = trees.flatten(center)
    jacobians = jax.vmap(lambda row: slopes(bounds, center, row))(rows)
    directions = jax.random.normal(jax.random.key(0), (len(LENGTHS), flat.shape[0])) * (
        0.1 + jnp.abs(flat)
    )
    moves = _scaled(bounds, jacobians, directions, center, rows)

    def changes(at: Position, row: Example) -> tuple[Predictor, Scalar, Predictor, Scalar]:
        z = bounds.predictor(at, row)
        value, slope = jax.value_and_grad(bounds.outcome)(z, row)
        return z, value, slope, target.log_likelihood(at, row)

    z, value, slope, wanted = jax.vmap(lambda row: changes(center, row))(rows)

    def one(move: Vector) -> tuple[PerRow, PerRow]:
        at = trees.unflatten_like(flat + move, center)
        there = jax.vmap(lambda row: changes(at, row))(rows)
        # the move as rounding left it
        pushed = jnp.einsum("ikp,p->ik", jacobians, trees.flatten(at) - flat)
        # what was added up to z: rounded each, and differently by another way of writing the same
        # sum
        sums = jnp.einsum("ikp,p->ik", jnp.abs(jacobians), jnp.abs(flat) + jnp.abs(move)) + jnp.abs(
            _as_rows(z)
        )
        bend = jnp.abs(_as_rows(there[0]) - _as_rows(z) - pushed)
        bent = (bend / (TOLERANCE * jnp.abs(pushed) + ROUNDING * sums + TINY)).max(axis=1)
        change, expected = there[1] - value, there[3] - wanted
        steepest = jnp.maximum(jnp.abs(_as_rows(slope)), jnp.abs(_as_rows(there[2])))
        size = sum(jnp.abs(each) for each in (value, wanted, there[1], there[3])) + (
            steepest * sums
        ).sum(axis=1)
        apart = jnp.abs(change - expected) / (
            TOLERANCE * jnp.abs(expected) + ROUNDING * size + TINY
        )
        is_known = target.is_inside(at) & jnp.isfinite(expected)
        return jnp.where(jnp.isfinite(bent), bent, 0.0), jnp.where(
            is_known & jnp.isfinite(apart), apart, 0.0
        )

    return jax.lax.map(one, moves)


def _scaled(
    bounds: LinearBounds,
    jacobians: Float[Array, "rows predictors parameters"],
    directions: Moves,
    center: Position,
    rows: Rows,
) -> Moves:
    """Moves of the position that change a typical example's predictor by the lengths, in units of
    its likelihood's scale.
    """
    scales: PerRow | float = 1.0
    if bounds.scale is not None:
        of_example = bounds.scale
        scales = jax.vmap(lambda row: of_example(bounds.predictor(center, row), row))(rows)
    # |f^(k)| <= K_k scale_i: a change of (K_k scale_i)^(-1/k) moves the outcome by about one
    known = [
        (power + 1, bound)
        for power, bound in enumerate(bounds.derivatives)
        if 0.0 < bound < math.inf
    ]
    units = [(bound * jnp.maximum(scales, TINY)) ** (-1.0 / power) for power, bound in known] or [
        jnp.float32(1.0)
    ]
    reached = jnp.linalg.norm(jnp.einsum("ikp,mp->mik", jacobians, directions), axis=-1)
    pace = jnp.median(reached / reduce(jnp.minimum, units), axis=1)
    return directions * (jnp.asarray(LENGTHS) / jnp.maximum(pace, TINY))[:, None]


def _as_rows(values: Float[Array, " rows *predictor"]) -> Float[Array, "rows predictors"]:
    return values.reshape(values.shape[0], -1)
