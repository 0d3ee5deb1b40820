"""The scale of Gaussian noise, from the sum of squared residuals, without rows."""

from typing import Any

import jax.numpy as jnp

from amagold.acceptance._effect_expansion import EffectExpansion
from amagold.acceptance._effect_state import EffectDraws, EffectState
from amagold.core.shapes import Scalar
from amagold.target import Target, with_data
from amagold.target._group_effects import NOISE


def redraw_noise(
    sweep: EffectExpansion, target: Target, draws: EffectDraws, state: EffectState
) -> EffectState:
    """The noise's scale, from the sum of squared residuals: 1 / s^2 ~ Gamma(n / 2, rate / 2)
    but for the prior.
    """
    prior: Any = with_data(target, "a sweep", "use acceptance.full()").log_prior
    center: Any = sweep.reference.position
    # as if the noise were the reference's
    squares = sweep.squares + 2.0 * sweep.rows_energy(state._replace(noise=jnp.float32(0.0)))
    wanted = 0.5 * (jnp.log(0.5 * squares) - jnp.log(draws.noise_gamma))

    def log_prior(noise: Scalar) -> Scalar:
        return prior.noise(center[NOISE] + noise)

    ratio = log_prior(wanted) - log_prior(state.noise)
    is_accepted = jnp.isfinite(wanted) & (draws.noise_test < ratio)
    return state._replace(noise=jnp.where(is_accepted, wanted, state.noise))
