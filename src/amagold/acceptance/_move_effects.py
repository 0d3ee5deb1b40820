"""The effects of a factor, every level by itself given everything else.

    eta*_g = mean_g + P_g^(-1/2) xi_g, or a walk; accepted with min(1, exp(E - E* + l_g))

Given coefficients and scales, levels of a factor are independent, and so are their tests.
"""

import jax.numpy as jnp
from jax import Array

from amagold.acceptance._effect_state import EffectDraws, EffectState, precision_of
from amagold.acceptance._effect_terms import Effects, PerLevel
from amagold.acceptance._effect_visits import EffectVisits, counts_of, no_visit
from amagold.acceptance._group_visit import Visit
from amagold.core.shapes import Scalar
from amagold.core.small_matrices import solve_upper, times_upper
from amagold.target import Target

SHORTEST, USUAL, LONG = 0.5, 2.0, 6.0  # strides of walks, in standard deviations


def move_effects(
    sweep: EffectVisits, number: int, target: Target, draws: EffectDraws, state: EffectState
) -> tuple[EffectState, Visit, Scalar]:
    """Every level of a factor by itself, given everything else."""
    terms, here = sweep.factors[number], state.effects[number]
    known = sweep.conditional(number, state, precision_of(state, number))
    step = solve_upper(known.factor, draws.effects[number])
    afresh = known.mean + step
    if sweep.bounds is None:
        moved = state.with_effects(number, afresh)
        return moved, no_visit(terms), jnp.float32(1.0)
    walks = draws.all_walk | (draws.skewed_walk & terms.is_skewed)
    # evenly in its logarithm: tails may be several times as wide as the Gaussian
    longest = jnp.where(terms.is_skewed, LONG, USUAL)
    stride = SHORTEST * (longest / SHORTEST) ** draws.stride
    there = jnp.where(walks[:, None], here + stride[:, None] * step, afresh)
    # E(eta) - E(eta*); a fresh draw has it already
    fall = _squares(known.factor, here - known.mean) - _squares(known.factor, there - known.mean)
    ratio = jnp.where(walks, 0.5 * fall, 0.0)
    proposed = state.with_effects(number, there)
    bounds = sweep.row_bounds(number, state, proposed)
    # of the level alone, so that levels stay independent
    kappa = jnp.maximum(1.0, terms.effect_spread * counts_of(terms) * bounds)
    found = sweep.visit(number, target, state, proposed, bounds, kappa, draws.keys[number])
    is_accepted = draws.tests[number] < ratio + found.log_ratios
    moved = jnp.where(is_accepted[:, None], there, here)
    rate = jnp.mean(is_accepted.astype(jnp.float32))
    return state.with_effects(number, moved), found, rate


def _squares(factor: Array, vectors: Effects) -> PerLevel:
    """v P v of every level."""
    return jnp.sum(times_upper(factor, vectors) ** 2, axis=-1)
