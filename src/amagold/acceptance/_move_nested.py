"""Effects and scales of a factor and of the one that is nested in it, given the sums of both.

A level g of the outer factor and its children h trade places: with u_g + e and u_h - e for all h in
g no row's predictor changes, nor does any test of rows. What is left are the two priors, of which e
has the Gaussian

    Lambda_g = Q_g + n_g Q_h,  mean_g = -Lambda_g^-1 b_g,  b_g = Q_g u_g - Q_h sum_h u_h

with n_g the number of children. So the scales of both walk with e integrated out, at the energy

    K = [tr(Q_g sum_g u_g u_g^T) - L_g log |Q_g| + tr(Q_h sum_h u_h u_h^T) - L_h log |Q_h|
         + sum_g (log |Lambda_g| - b_g Lambda_g^-1 b_g)] / 2 - log p(s_g) - log p(s_h)

with L levels, and then e is drawn. Given all effects, a scale would move by no more than what the
effects at hand allow, and those by no more than what the scale does.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.acceptance._effect_expansion import EffectExpansion
from amagold.acceptance._effect_state import EffectState, NestedDraws, precision_of
from amagold.acceptance._effect_terms import NestedPair
from amagold.core import trees
from amagold.core.array_types import Float32
from amagold.core.shapes import Scalar
from amagold.core.small_matrices import cholesky, log_determinant, solve_lower, solve_upper, times
from amagold.target import Target

Shares = Float32[Array, "parents shared"]


def move_nested(
    sweep: EffectExpansion, pair: NestedPair, target: Target, draws: NestedDraws, state: EffectState
) -> EffectState:
    """Scales of both factors, then what their effects share."""
    outer, inner = (
        sweep.factors[number].center
        + state.effects[number]
        - sweep.factors[number].shifts @ state.slopes
        for number in pair.factors
    )
    sums = children_sums(pair, inner)
    products = outer.T @ outer, inner.T @ inner

    def energy(at: EffectState) -> Scalar:
        factor, pull = exchange(pair, at, outer, sums)
        total = jnp.sum(log_determinant(factor)) - jnp.sum(solve_lower(factor, pull) ** 2)
        for number, product in zip(pair.factors, products, strict=True):
            precision = precision_of(at, number)
            levels = sweep.factors[number].form.num_levels
            total = total + jnp.sum(precision * product)
            total = total - levels * log_determinant(cholesky(precision))
            total = total - 2.0 * sweep.scale_prior(number, target, at)
        return 0.5 * total

    def walk(carry: tuple[EffectState, Scalar], drawn: tuple[Array, Array, Array]):
        at, here = carry
        moved = _walked(sweep, pair, at, drawn[0], drawn[1])
        there = energy(moved)
        is_accepted = jnp.isfinite(there) & (drawn[2] < here - there)
        return (trees.where(is_accepted, moved, at), jnp.where(is_accepted, there, here)), None

    drawn = draws.walks, draws.strides, draws.tests
    state, _ = jax.lax.scan(walk, (state, energy(state)), drawn)[0]
    factor, pull = exchange(pair, state, outer, sums)
    # e = mean + Lambda^(-1/2) xi
    share = solve_upper(factor, draws.shares - solve_lower(factor, pull))
    return shifted(pair, state, share)


def children_sums(
    pair: NestedPair, inner: Float32[Array, "children effects"]
) -> Float32[Array, "parents effects"]:
    """sum_h u_h of every level's children; those without rows have no parent."""
    levels = pair.counts.shape[0]
    return jax.ops.segment_sum(inner, pair.parents, levels + 1)[:levels]


def exchange(
    pair: NestedPair,
    state: EffectState,
    outer: Float32[Array, "parents _outer"],
    sums: Float32[Array, "parents _inner"],
) -> tuple[Array, Shares]:
    """The Cholesky factor of Lambda_g, and b_g, of the columns that both have."""
    ours, theirs = (np.asarray(columns) for columns in pair.columns)
    of_outer, of_inner = (precision_of(state, number) for number in pair.factors)
    matrix = of_outer[np.ix_(ours, ours)] + (
        pair.counts[:, None, None] * of_inner[np.ix_(theirs, theirs)]
    )
    pull = times(of_outer, outer)[:, ours] - times(of_inner, sums)[:, theirs]
    return cholesky(matrix), pull


def shifted(pair: NestedPair, state: EffectState, share: Shares) -> EffectState:
    """The outer effects with e, the inner ones without it."""
    (outer, inner), (ours, theirs) = pair.factors, (np.asarray(each) for each in pair.columns)
    state = state.with_effects(outer, state.effects[outer].at[:, ours].add(share))
    # children without rows lie beyond the last level, where nothing is taken
    taken = jnp.concatenate([share, jnp.zeros((1, share.shape[1]), jnp.float32)])[pair.parents]
    return state.with_effects(inner, state.effects[inner].at[:, theirs].add(-taken))


def _walked(
    sweep: EffectExpansion, pair: NestedPair, state: EffectState, noise: Array, strides: Array
) -> EffectState:
    """The scales and correlations of both, a step further."""
    start = 0
    for place, number in enumerate(pair.factors):
        form = sweep.factors[number].form
        size = form.num_effects + form.num_correlations
        # evenly in its logarithm, from what all effects tell of a scale to what one of them does
        width = (2.0 * form.num_levels) ** (-0.5 * strides[place])
        step = width * noise[start : start + size]
        scales, free = state.scales[number], state.free[number]
        state = state.with_scales(
            number, scales + step[: form.num_effects], free + step[form.num_effects :]
        )
        start += size
    return state
