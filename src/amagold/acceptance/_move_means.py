"""The means of all factors at once, which rows see only together (`SharedMeans`).

    eta* = eta + D w, w from its Gaussian

is accepted with min(1, exp(sum_g l_g)).
"""

import jax
import jax.numpy as jnp

from amagold.acceptance._effect_state import EffectState, SharedTurn, precision_of
from amagold.acceptance._effect_visits import EffectVisits, no_visit
from amagold.acceptance._group_visit import Visit
from amagold.core import trees
from amagold.core.shapes import Scalar
from amagold.core.small_matrices import times
from amagold.target import Target


def move_means(
    sweep: EffectVisits, target: Target, drawn: SharedTurn, state: EffectState
) -> tuple[EffectState, Visit, Scalar]:
    """Where they are then, the rows that were asked, and the chance to accept."""
    assert sweep.means is not None
    share, count = sweep.quotient(state), len(sweep.factors)
    slope, matrix = jnp.zeros(count, jnp.float32), share * jnp.eye(count, dtype=jnp.float32)
    for number, terms in enumerate(sweep.factors):
        precision = precision_of(state, number)
        known = sweep.conditional(number, state, precision)
        eta = state.effects[number]
        # the slope of the energy along eta, and from there along w
        here = known.slope + times(share * terms.curvature + precision, eta)
        slope = slope + jnp.einsum("gam,ga->m", sweep.means.directions[number], here)
        change = precision - share * terms.precision
        matrix = matrix + jnp.einsum("ab,abmn->mn", change, sweep.means.spans[number])
    factor = jnp.linalg.cholesky(matrix)
    noise = jax.scipy.linalg.solve_triangular(factor, drawn.means, lower=True, trans=1)
    move = noise - jax.scipy.linalg.cho_solve((factor, True), slope)
    proposed = state
    for number, directions in enumerate(sweep.means.directions):
        proposed = proposed.with_effects(number, state.effects[number] + directions @ move)
    largest, log_ratio = sweep.largest, jnp.float32(0.0)
    found = no_visit(sweep.factors[largest])
    if sweep.bounds is not None:
        apart = sweep.means.lengths * jnp.linalg.norm(move)
        together = sweep.reaches(largest, state) + sweep.reaches(largest, proposed)
        bounds = sweep.bounded(largest, apart, together)
        spread, key = sweep.means.spread, drawn.mean_key
        found = sweep.visit_all(largest, target, state, proposed, bounds, spread, key)
        log_ratio = jnp.sum(found.log_ratios)
    # far from the reference's scales rounding may leave no precision, which the scales alone tell
    is_known = jnp.isfinite(log_ratio) & jnp.all(jnp.isfinite(move))
    is_accepted = is_known & (drawn.mean_test < log_ratio)
    rate = jnp.where(is_known, jnp.exp(jnp.minimum(log_ratio, 0.0)), 0.0)
    return trees.where(is_accepted, proposed, state), found, rate
