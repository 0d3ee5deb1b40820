"""Coefficients with horseshoe priors, where a sweep turns them all:

    tau | theta            Metropolis steps, the local scales integrated out
    lambda | theta, tau    drawn exactly, and forgotten after the next line
    theta | lambda, tau    the turn, about the Gaussian whose prior has 1 / (lambda_j tau)^2 in the
                           place of the reference's precisions

The last two leave theta's distribution given tau as it is, lambda integrated out, because lambda
and theta together are left as they are. What the turn's test looks at does not know of priors.
"""

from typing import Any, cast

import jax
import jax.numpy as jnp
from jax import Array

from amagold.acceptance._effect_expansion import EffectExpansion
from amagold.acceptance._effect_state import EffectState, SharedTurn
from amagold.core.cholesky import factor_and_inverse
from amagold.core.shapes import Scalar
from amagold.target._group_effects import FIXED


def redraw_taus(sweep: EffectExpansion, drawn: SharedTurn, state: EffectState) -> EffectState:
    if sweep.shrunk is None or drawn.shrunk is None or state.taus is None:
        return state
    theta = sweep.position(state)[FIXED]
    found = sweep.shrunk.prior.walk(theta, state.taus, drawn.shrunk.strides, drawn.shrunk.tests)
    return state._replace(taus=found)


def shrunk_turn(
    sweep: EffectExpansion,
    slope: Array,
    matrix: Array,
    drawn: SharedTurn,
    state: EffectState,
    angle: Scalar,
) -> Array:
    """d after the turn; slope and matrix are those of the reference's prior, at d = 0.

    In units of the coefficients, of a precision whose diagonal is one: local scales differ by many
    powers of ten.
    """
    shrunk, reference = sweep.shrunk, cast("Any", sweep.reference.position)
    assert shrunk is not None
    assert drawn.shrunk is not None
    assert state.taus is not None
    places, center = shrunk.prior.places, reference[FIXED]
    delta = sweep.unwhitening @ state.slopes
    own = shrunk.prior.precisions(center + delta, state.taus, drawn.shrunk.shares)
    whole = shrunk.root @ matrix @ shrunk.root.T
    more = own - shrunk.precisions
    whole = whole.at[places, places].add(more)
    force = (shrunk.root @ slope).at[places].add(more * center[places])
    unit = jax.lax.rsqrt(jnp.diagonal(whole))
    scaled = (unit[:, None] * whole * unit).at[jnp.diag_indices(len(unit))].set(1.0)
    _, inverse = factor_and_inverse(scaled)
    mean = -unit * (inverse.T @ (inverse @ (unit * force)))
    noise = unit * (inverse.T @ drawn.slopes)
    there = mean + jnp.cos(angle) * (delta - mean) + jnp.sin(angle) * noise
    return shrunk.root.T @ there
