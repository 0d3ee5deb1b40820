"""The coefficients, with the effects moving along: eta is fixed, and u_g = u_r + eta_g - C_g d.

    d* = m + cos(h) (d - m) + sin(h) M^(-1/2) xi

With few levels eta - B d is fixed instead, B as the scales of now have it
(`EffectExpansion.slopes_given`). Accepted with min(1, exp(t . (d* - d) + sum_g l_g)), t the tilt
that m is moved by.
"""

import jax
import jax.numpy as jnp
from jax import Array

from amagold.acceptance._effect_state import EffectState, SharedTurn
from amagold.acceptance._effect_visits import EffectVisits, no_visit
from amagold.acceptance._group_visit import Visit
from amagold.acceptance._shrunk_turn import shrunk_turn
from amagold.core import trees
from amagold.core.shapes import Scalar
from amagold.target import Target

SHORT = 0.25  # of the slopes' angle, now and then: out of tails


def move_slopes(
    sweep: EffectVisits, target: Target, drawn: SharedTurn, state: EffectState
) -> tuple[EffectState, Visit, Scalar]:
    """Where they are then, the rows that were asked, and log a."""
    slope, matrix, tilt, follow = sweep.slopes_given(state)
    is_short = drawn.is_short & (sweep.bounds is not None)
    angle = sweep.angle * jnp.where(is_short, SHORT, 1.0)
    turn = _turn if sweep.shrunk is None else shrunk_turn
    there = turn(sweep, slope + tilt, matrix, drawn, state, angle)
    log_ratio = jnp.dot(tilt, there - state.slopes)
    proposed = state._replace(slopes=there)
    if follow is not None:
        moved = state.effects[0] + follow @ (there - state.slopes)
        proposed = proposed.with_effects(0, moved)
    largest = sweep.largest
    found = no_visit(sweep.factors[largest])
    if sweep.bounds is not None:
        bounds = sweep.row_bounds(largest, state, proposed)
        spread, key = sweep.slope_spread, drawn.slope_key
        found = sweep.visit_all(largest, target, state, proposed, bounds, spread, key)
        log_ratio = log_ratio + jnp.sum(found.log_ratios)
    is_accepted = jnp.isfinite(log_ratio) & (drawn.slope_test < log_ratio)
    return trees.where(is_accepted, proposed, state), found, log_ratio


def _turn(
    sweep: EffectVisits,
    slope: Array,
    matrix: Array,
    drawn: SharedTurn,
    state: EffectState,
    angle: Scalar,
) -> Array:
    """d after the turn about the Gaussian of this slope at d = 0 and precision."""
    factor = jnp.linalg.cholesky(matrix)
    mean = -jax.scipy.linalg.cho_solve((factor, True), slope)
    noise = jax.scipy.linalg.solve_triangular(factor, drawn.slopes, lower=True, trans=1)
    return mean + jnp.cos(angle) * (state.slopes - mean) + jnp.sin(angle) * noise
