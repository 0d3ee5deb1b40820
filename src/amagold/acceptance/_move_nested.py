"""Effects and scales of a factor and of the one that is nested in it, given the sums of both.

A level g of the outer factor and its children h trade places: with u_g + e and u_h - e for all h in
g no row's predictor changes, nor does any test of rows. What is left are the two priors, of which e
has the Gaussian

    Lambda_g = Q_g + n_g Q_h,  mean_g = -Lambda_g^-1 b_g,  b_g = Q_g u_g - Q_h sum_h u_h

with n_g the number of children. So the scales of both walk with e integrated out, and then e is
drawn. Given all effects, a scale would move by no more than what the effects at hand allow, and
those by no more than what the scale does.

The energy with e integrated out is, with m_g = u_g + mean_h u_h, which no e changes,

    K = [sum_g (m_g (1 / Q_g + 1 / (n_g Q_h))^-1 m_g + log |Lambda_g|) - L_g log |Q_g|
         + tr(Q_h sum_h (u_h - mean) (u_h - mean)^T) - L_h log |Q_h|] / 2 - log p(s_g) - log p(s_h)

with L levels. Where only some columns are shared, u_g and the means are those of the shared ones
less what the others let expect of them, and those have terms of their own. Nothing large cancels
here where a scale is small.
"""

from typing import NamedTuple

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
Columns = np.ndarray


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
    known = effects_of_pair(pair, outer, inner, sums)

    def energy(at: EffectState) -> Scalar:
        return energy_given(sweep, pair, target, known, at)

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


class EffectsOfPair(NamedTuple):
    """What the energy of scales knows of the effects."""

    outer: Array
    means: Array  # of a level's children
    within: Array  # the sum of their products about those


def effects_of_pair(pair: NestedPair, outer: Array, inner: Array, sums: Array) -> EffectsOfPair:
    means = sums / jnp.maximum(pair.counts, 1.0)[:, None]
    # children without rows have no parent, and are about zero
    apart = inner - jnp.concatenate([means, jnp.zeros_like(means[:1])])[pair.parents]
    return EffectsOfPair(outer, means, apart.T @ apart)


def energy_given(
    sweep: EffectExpansion, pair: NestedPair, target: Target, known: EffectsOfPair, at: EffectState
) -> Scalar:
    """K."""
    outer, means, within = known
    counts = jnp.maximum(pair.counts, 1.0)
    (ours, theirs), (levels, children) = (
        [divided(precision_of(at, f), columns) for f, columns in pair_columns(pair)],
        [sweep.factors[number].form.num_levels for number in pair.factors],
    )
    shared = ours.shared_part(outer) + theirs.shared_part(means)
    spread = cholesky(ours.variance + theirs.variance / counts[:, None, None])
    has_children = pair.counts > 0
    of_shared = jnp.sum(solve_lower(spread, shared) ** 2, axis=-1) + log_determinant(spread)
    # log |Lambda| = log |Q_g| + log |n Q_h| + log |1 / Q_g + 1 / (n Q_h)|
    logs = theirs.log_precision + theirs.variance.shape[0] * jnp.log(counts)
    total = jnp.sum(jnp.where(has_children, of_shared + logs, 0.0))
    total = total + jnp.sum(theirs.precision * within) - children * theirs.log_determinant
    total = total + jnp.sum(ours.rest_energy(outer)) - levels * ours.log_rest
    total = total + jnp.sum(pair.counts * theirs.rest_energy(means))
    for number in pair.factors:
        total = total - 2.0 * sweep.scale_prior(number, target, at)
    return 0.5 * total


class Divided(NamedTuple):
    """The precision of a factor's effects by the columns that are shared and the rest: given the
    rest, shared ones have this variance, and lie `lean` times the rest below zero.
    """

    precision: Array
    shared: Columns
    rest: Columns
    variance: Array
    lean: Array
    rest_precision: Array
    log_precision: Scalar  # of the shared ones given the rest
    log_rest: Scalar

    @property
    def log_determinant(self) -> Scalar:
        return self.log_precision + self.log_rest

    def shared_part(self, effects: Array) -> Array:
        """Less what the others let expect."""
        own = effects[:, self.shared]
        return own + effects[:, self.rest] @ self.lean.T if self.rest.size else own

    def rest_energy(self, effects: Array) -> Array:
        if not self.rest.size:
            return jnp.zeros(effects.shape[0], effects.dtype)
        rest = effects[:, self.rest]
        return jnp.sum(rest * times(self.rest_precision, rest), axis=-1)


def pair_columns(pair: NestedPair) -> list[tuple[int, Columns]]:
    """Each factor, and its columns that both have."""
    return [(f, np.asarray(part)) for f, part in zip(pair.factors, pair.columns, strict=True)]


def divided(precision: Array, shared: Columns) -> Divided:
    rest = np.setdiff1d(np.arange(precision.shape[0]), shared)
    own, across = precision[np.ix_(shared, shared)], precision[np.ix_(shared, rest)]
    factor = cholesky(own)
    units = jnp.eye(len(shared))
    root = jnp.stack([solve_lower(factor, unit) for unit in units], axis=-1)
    variance = root.T @ root
    lean = variance @ across
    left = precision[np.ix_(rest, rest)] - across.T @ lean
    log_rest = log_determinant(cholesky(left)) if len(rest) else jnp.float32(0.0)
    logs = log_determinant(factor)
    return Divided(precision, shared, rest, variance, lean, left, logs, log_rest)


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
