"""A factor's scales, with its whitened effects fixed.

    log s* = log s + stride xi with v_g = P_g^(1/2) (eta_g - mean_g) fixed

has the Jacobian prod |P_g|^(1/2) / |P*_g|^(1/2), and is accepted with

    min(1, exp(sum_g [J_g - J*_g + l_g]) p(s*) / p(s)),
    J_g = (log |P_g| - log |Q| - c_g P_g^-1 c_g) / 2

where J_g is the energy that is left when effects are integrated out of the Gaussian, up to what
scales do not change, and c_g the slope of the rows' energy where the effects are zero.
"""

import jax
import jax.numpy as jnp

from amagold.acceptance._effect_state import EffectDraws, EffectState, ScaleWalk, precision_of
from amagold.acceptance._effect_visits import EffectVisits, no_visit
from amagold.acceptance._group_visit import Visit, together
from amagold.core import trees
from amagold.core.shapes import Scalar
from amagold.core.small_matrices import solve_upper, times_upper
from amagold.target import Target


def move_scales(
    sweep: EffectVisits, number: int, target: Target, draws: EffectDraws, state: EffectState
) -> tuple[EffectState, Visit, Scalar]:
    """Where they are after all steps, the rows that were asked, and the mean chance to accept."""

    def step(state: EffectState, drawn: ScaleWalk) -> tuple[EffectState, tuple[Visit, Scalar]]:
        state, found, rate = walk_scales(sweep, number, target, drawn, state)
        return state, (found, rate)

    state, (visits, rates) = jax.lax.scan(step, state, draws.walks[number])
    return state, together(visits), jnp.mean(rates)


def walk_scales(
    sweep: EffectVisits, number: int, target: Target, drawn: ScaleWalk, state: EffectState
) -> tuple[EffectState, Visit, Scalar]:
    """One step."""
    terms = sweep.factors[number]
    walk = terms.stride * drawn.noise
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
        spread = terms.scale_spread
        found = sweep.visit_all(number, target, state, proposed, bounds, spread, drawn.key)
        log_ratio = log_ratio + jnp.sum(found.log_ratios)
    is_accepted = jnp.isfinite(log_ratio) & (drawn.test < log_ratio)
    rate = jnp.where(jnp.isfinite(log_ratio), jnp.exp(jnp.minimum(log_ratio, 0.0)), 0.0)
    return trees.where(is_accepted, proposed, state), found, rate
