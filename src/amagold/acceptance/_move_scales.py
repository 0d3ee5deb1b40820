"""A factor's scales, with its whitened effects fixed.

    log s* = log s + stride xi with v_g = P_g^(1/2) (eta_g - mean_g) fixed

has the Jacobian prod |P_g|^(1/2) / |P*_g|^(1/2), and is accepted with

    min(1, exp(sum_g [J_g - J*_g + l_g]) p(s*) / p(s)),
    J_g = (a Q a - slope P_g^-1 slope + log |P_g| - log |Q|) / 2, a = u_r - C_g d

where J_g is the energy that is left when effects are integrated out of the Gaussian.
"""

import jax.numpy as jnp

from amagold.acceptance._effect_state import EffectDraws, EffectState, precision_of
from amagold.acceptance._effect_visits import EffectVisits, no_visit
from amagold.acceptance._group_visit import Visit
from amagold.core import trees
from amagold.core.shapes import Scalar
from amagold.core.small_matrices import solve_upper, times_upper
from amagold.target import Target


def move_scales(
    sweep: EffectVisits, number: int, target: Target, draws: EffectDraws, state: EffectState
) -> tuple[EffectState, Visit, Scalar]:
    """Where they are then, the rows that were asked, and the chance to accept."""
    terms = sweep.factors[number]
    walk = terms.stride * draws.walks[number]
    scales, free = state.scales[number], state.free[number]
    wanted = state.with_scales(number, scales + walk[: scales.size], free + walk[scales.size :])
    here = sweep.conditional(number, state, precision_of(state, number))
    there = sweep.conditional(number, wanted, precision_of(wanted, number))
    # v = P^(1/2) (eta - mean) stays
    whitened = times_upper(here.factor, state.effects[number] - here.mean)
    proposed = wanted.with_effects(number, there.mean + solve_upper(there.factor, whitened))
    of_levels = sweep.evidence(number, state, here) - sweep.evidence(number, wanted, there)
    prior = sweep.scale_prior(number, target, wanted) - sweep.scale_prior(number, target, state)
    log_ratio = jnp.sum(of_levels) + prior
    found = no_visit(terms)
    if sweep.bounds is not None:
        bounds = sweep.row_bounds(number, state, proposed)
        spread, key = terms.scale_spread, draws.scale_keys[number]
        found = sweep.visit_all(number, target, state, proposed, bounds, spread, key)
        log_ratio = log_ratio + jnp.sum(found.log_ratios)
    is_accepted = jnp.isfinite(log_ratio) & (draws.scale_tests[number] < log_ratio)
    rate = jnp.where(jnp.isfinite(log_ratio), jnp.exp(jnp.minimum(log_ratio, 0.0)), 0.0)
    return trees.where(is_accepted, proposed, state), found, rate
