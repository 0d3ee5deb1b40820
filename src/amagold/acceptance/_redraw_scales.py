"""A factor's scales, with its effects fixed: from sums of their squares, without rows."""

import jax
import jax.numpy as jnp
from jax import Array

from amagold.acceptance._effect_expansion import EffectExpansion
from amagold.acceptance._effect_state import EffectDraws, EffectState, precision_of
from amagold.core import trees
from amagold.core.shapes import Scalar
from amagold.core.small_matrices import cholesky, log_determinant
from amagold.target import Target

STEPS = 8  # of the walk of several effects' scales


def redraw_scales(
    sweep: EffectExpansion, number: int, target: Target, draws: EffectDraws, state: EffectState
) -> EffectState:
    """A factor's scales, with its effects fixed."""
    terms, form = sweep.factors[number], sweep.factors[number].form
    effects = terms.center + state.effects[number] - terms.shifts @ state.slopes
    products = effects.T @ effects
    if form.num_effects == 1:
        # 1 / s^2 ~ Gamma(levels / 2, rate sum u^2 / 2) but for the prior
        log_scale = 0.5 * (jnp.log(0.5 * products[0, 0]) - jnp.log(draws.gammas[number]))
        wanted = state.with_scales(number, log_scale[None], state.free[number])
        ratio = sweep.scale_prior(number, target, wanted) - sweep.scale_prior(number, target, state)
        is_accepted = jnp.isfinite(log_scale) & (draws.gamma_tests[number] < ratio)
        return trees.where(is_accepted, wanted, state)

    def energy(at: EffectState) -> Scalar:
        precision = precision_of(at, number)
        own = 0.5 * jnp.sum(precision * products)
        own = own - 0.5 * form.num_levels * log_determinant(cholesky(precision))
        return own - sweep.scale_prior(number, target, at)

    def walk(at: EffectState, drawn: tuple[Array, Array]) -> tuple[EffectState, None]:
        move = drawn[0] * (2.4 / (2.0 * form.num_levels * drawn[0].size) ** 0.5)
        size = form.num_effects
        moved = at.with_scales(
            number, at.scales[number] + move[:size], at.free[number] + move[size:]
        )
        ratio = energy(at) - energy(moved)
        return trees.where(jnp.isfinite(ratio) & (drawn[1] < ratio), moved, at), None

    drawn = draws.long_walks[number], draws.long_tests[number]
    return jax.lax.scan(walk, state, drawn)[0]
