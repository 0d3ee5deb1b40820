"""Where chains over a mixed model may begin: draws of the Gaussian about the reference."""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from amagold.acceptance._effect_setup import STRIDE
from amagold.acceptance._effect_state import EffectState, precision_of
from amagold.acceptance._effect_sweep import EffectSweep
from amagold.core.compiling import ONCE, jit
from amagold.core.shapes import RandomKey, Scalar
from amagold.core.small_matrices import solve_upper
from amagold.target import Posterior

NUM_CHAINS = 4  # of a pilot


@jit(ONCE)
def positions_of(sweep: EffectSweep, states: EffectState) -> Any:
    return jax.vmap(sweep.position)(states)


@jit(ONCE)
def remembered(target: Posterior, sweep: EffectSweep, positions: Any) -> EffectState:
    return jax.vmap(lambda at: sweep.remember(target, at))(positions)


def pilot_starts(target: Posterior, sweep: EffectSweep, key: RandomKey) -> EffectState:
    widths = tuple(each.stride[: each.center.shape[1]] / STRIDE for each in sweep.factors)
    chains = jax.random.split(key, NUM_CHAINS)
    return gaussian_states(target, sweep, chains, jnp.float32(1.0), widths)


@jit(ONCE)
def gaussian_states(
    target: Posterior,
    sweep: EffectSweep,
    keys: Any,
    width: Scalar,
    scale_widths: tuple[Array, ...],
) -> EffectState:
    """One for each key."""
    return jax.vmap(lambda key: gaussian_draw(target, sweep, key, width, scale_widths))(keys)


def gaussian_draw(
    target: Posterior,
    sweep: EffectSweep,
    key: RandomKey,
    width: Scalar,
    scale_widths: tuple[Array, ...],
) -> EffectState:
    """About the reference: coefficients and scales so many times as wide as the Gaussian, then
    effects given those.
    """
    slope_key, noise_key, *keys = jax.random.split(key, 2 + 2 * len(sweep.factors))
    center: Any = sweep.reference.position
    state = sweep.remember(target, center)
    slopes = jax.random.normal(slope_key, sweep.slope.shape, jnp.float32)
    state = state._replace(slopes=width * slopes)
    if state.taus is not None:
        away = jax.random.normal(jax.random.fold_in(slope_key, 1), state.taus.shape, jnp.float32)
        state = state._replace(taus=state.taus + 0.5 * width * away)
    for number in range(len(sweep.factors)):
        scales, free = state.scales[number], state.free[number]
        away = (
            width
            * scale_widths[number]
            * jax.random.truncated_normal(keys[2 * number], -2.0, 2.0, scales.shape, jnp.float32)
        )
        state = state.with_scales(number, scales + away, free)
    for number in range(len(sweep.factors)):
        known = sweep.conditional(number, state, precision_of(state, number))
        shape = state.effects[number].shape
        # of ten thousand some would be farther out than a chain comes home from in a warm-up
        drawn = jax.random.truncated_normal(keys[2 * number + 1], -2.0, 2.0, shape, jnp.float32)
        state = state.with_effects(number, known.mean + solve_upper(known.factor, drawn))
    if sweep.bounds is None:
        rows = jnp.maximum(sweep.num_rows, 1.0)
        state = state._replace(
            noise=width * jax.random.normal(noise_key, dtype=jnp.float32) * (0.5 / rows) ** 0.5
        )
    return state
