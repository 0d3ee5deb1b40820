"""Pilots of a sweep over effects: how long its moves may be, how much noise its tests may have, and
whether the reference lies where chains are.

Whatever pilots choose is frozen before the first draw that is kept, and any choice is exact.
"""

import dataclasses
import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.acceptance._effect_setup import STRIDE, untuned_effects
from amagold.acceptance._effect_state import EffectMoves, EffectState, precision_of
from amagold.acceptance._effect_sweep import EffectSweep
from amagold.acceptance._group_visit import Visit
from amagold.core.compiling import OFTEN, ONCE, jit
from amagold.core.shapes import RandomKey, Scalar
from amagold.core.small_matrices import solve_upper
from amagold.mode._effect_sums import EffectSums, sums_at
from amagold.target import Posterior

NOISE = 0.25  # variance that arrivals may bring to log a
NUM_CHAINS = 4  # of a pilot
LENGTH = 40  # sweeps of one
MANY = 4  # pilots that say together where chains are
# of the slopes, tried from the largest; the first that is accepted often enough is taken
ANGLES = (math.pi / 2.0, 1.1, 0.8, 0.55, 0.35, 0.2, 0.1)
OFTEN_ENOUGH = 0.5
WANTED = 0.35  # of the scales' walk, accepted
FAR = 0.5  # standard deviations between chains and the reference, beyond which it moves
SMALLEST_BLOCK, LARGEST_BLOCK = 64, 512
MOST_MOVES = 2  # of the reference


class Pilot(NamedTuple):
    """What some sweeps did on average, in numbers of the device or the host; tuples have an entry
    for each factor.
    """

    acceptance: Any  # of the slopes
    effect_rates: Any
    scale_rates: Any
    slope_share: Any  # mean of q^2 over arrivals
    effect_shares: Any
    scale_shares: Any
    slope_rows: Any
    effect_rows: Any
    scale_rows: Any
    mean_rate: Any  # of the move of all factors' means
    mean_share: Any
    mean_rows: Any
    broken_bound: Any
    mean: Any  # position
    slope_means: Any  # of d
    slope_widths: Any
    scale_means: Any
    scale_widths: Any


class TunedEffects(NamedTuple):
    sweep: EffectSweep
    pilot: Pilot
    num_passes: int  # over the data, the pilots' own


def tuned_effects(target: Posterior, sums: EffectSums, key: RandomKey) -> TunedEffects:
    """The sweep about a reference, or about another where chains turn out to be elsewhere."""
    sweep, passes = _sized(untuned_effects(target, sums)), 1
    keys = (jax.random.fold_in(key, number) for number in itertools.count())
    states = _starts(target, sweep, next(keys))
    found = None
    for moves in range(MOST_MOVES + 1):
        sweep, states, found = _tuned(target, sweep, states, keys)
        parts = []
        for _ in range(MANY):
            states, found = pilot(target, sweep, states, next(keys))
            parts.append(found)
        found = _together(parts)
        if moves == MOST_MOVES or sweep.bounds is None or not _is_far(sweep, found):
            break
        place = {name: np.asarray(values) for name, values in found.mean.items()}
        positions = positions_of(sweep, states)
        there = _sized(untuned_effects(target, sums_at(target, place)))
        sweep, passes = _like(there, sweep), passes + 2
        states = _remembered(target, sweep, positions)
    assert found is not None
    return TunedEffects(sweep, found, passes)


def _sized(sweep: EffectSweep) -> EffectSweep:
    """With blocks about as long as the tests of so many levels need."""
    levels = max(terms.form.num_levels for terms in sweep.factors)
    block = 2 ** round(math.log2(max(1.0, 0.06 * levels)))
    return dataclasses.replace(sweep, block_size=min(LARGEST_BLOCK, max(SMALLEST_BLOCK, block)))


def _like(sweep: EffectSweep, other: EffectSweep) -> EffectSweep:
    """With what another one was tuned to."""
    factors = tuple(
        dataclasses.replace(
            ours,
            stride=theirs.stride,
            effect_spread=theirs.effect_spread,
            scale_spread=theirs.scale_spread,
        )
        for ours, theirs in zip(sweep.factors, other.factors, strict=True)
    )
    means = sweep.means
    if means is not None and other.means is not None:
        means = dataclasses.replace(means, spread=other.means.spread)
    return dataclasses.replace(
        sweep, factors=factors, angle=other.angle, slope_spread=other.slope_spread, means=means
    )


def _tuned(
    target: Posterior, sweep: EffectSweep, states: EffectState, keys: Any
) -> tuple[EffectSweep, EffectState, Pilot]:
    """Noise first, then the largest angle that is accepted often enough, and strides."""
    states, found = pilot(target, sweep, states, next(keys))
    sweep = _with_noise(sweep, found)
    for angle in ANGLES if sweep.bounds is not None else ANGLES[:1]:
        sweep = dataclasses.replace(sweep, angle=jnp.float32(angle))
        states, found = pilot(target, sweep, states, next(keys))
        sweep = _with_strides(_with_noise(sweep, found), found)
        if float(found.acceptance) >= OFTEN_ENOUGH:
            break
    return sweep, states, found


def _with_noise(sweep: EffectSweep, found: Pilot) -> EffectSweep:
    factors = tuple(
        dataclasses.replace(terms, effect_spread=one / NOISE, scale_spread=other / NOISE)
        for terms, one, other in zip(
            sweep.factors, found.effect_shares, found.scale_shares, strict=True
        )
    )
    means = sweep.means
    if means is not None:
        means = dataclasses.replace(means, spread=found.mean_share / NOISE)
    spread = found.slope_share / NOISE
    return dataclasses.replace(sweep, factors=factors, slope_spread=spread, means=means)


def _with_strides(sweep: EffectSweep, found: Pilot) -> EffectSweep:
    """Longer where walks are accepted often, shorter where they are not."""
    factors = []
    for terms, rate in zip(sweep.factors, found.scale_rates, strict=True):
        factor = math.exp(max(-1.2, min(1.2, 2.0 * (float(rate) - WANTED) / WANTED)))
        factors.append(dataclasses.replace(terms, stride=terms.stride * jnp.float32(factor)))
    return dataclasses.replace(sweep, factors=tuple(factors))


def _is_far(sweep: EffectSweep, found: Pilot) -> bool:
    center: Any = sweep.reference.position
    shifts = [
        np.abs(np.asarray(found.slope_means)) / np.maximum(np.asarray(found.slope_widths), 1e-6)
    ]
    for terms, mean, width in zip(
        sweep.factors, found.scale_means, found.scale_widths, strict=True
    ):
        at = np.reshape(np.asarray(center[f"{terms.form.name}_sigma"]), -1)
        shifts.append(np.abs(np.asarray(mean) - at) / np.maximum(np.asarray(width), 1e-6))
    return max(float(each.max()) for each in shifts) > FAR


def pilot(
    target: Posterior, sweep: EffectSweep, states: EffectState, key: RandomKey
) -> tuple[EffectState, Pilot]:
    """Some sweeps of some chains; always as many, so that one program does for all."""
    return _pilot(target, sweep, states, jax.random.split(key, LENGTH))


def _together(parts: list[Pilot]) -> Pilot:
    """Averages over several."""
    parts = jax.device_get(parts)
    found = jax.tree.map(lambda *values: np.mean(values, axis=0), *parts)

    def width(means: Any, widths: Any) -> np.ndarray:
        squares = np.mean([each**2 for each in widths], axis=0)
        return np.sqrt(squares + np.var(means, axis=0))

    slopes = width([part.slope_means for part in parts], [part.slope_widths for part in parts])
    scales = tuple(
        width([part.scale_means[f] for part in parts], [part.scale_widths[f] for part in parts])
        for f in range(len(found.scale_means))
    )
    broken = max(float(part.broken_bound) for part in parts)
    return found._replace(slope_widths=slopes, scale_widths=scales, broken_bound=broken)


@jit(OFTEN)
def _pilot(
    target: Posterior, sweep: EffectSweep, states: EffectState, keys: Any
) -> tuple[EffectState, Pilot]:
    skipped = LENGTH // 4

    def one(state: EffectState, key: RandomKey) -> tuple[EffectState, Any]:
        moved, moves = sweep.sweep(target, sweep.draw(key), state)
        return moved, (moved, _counted(moves))

    def step(carry: Any, numbered: Any) -> tuple[Any, Any]:
        states, total = carry
        number, key = numbered
        count = jax.tree.leaves(states)[0].shape[0]
        states, (moved, counted) = jax.vmap(one)(states, jax.random.split(key, count))
        mean = jax.tree.map(lambda leaf: leaf.mean(axis=0), jax.vmap(sweep.position)(moved))
        is_kept = (number >= skipped).astype(jnp.float32)
        total = jax.tree.map(lambda sum, part: sum + is_kept * part, total, mean)
        kept = (moved.slopes, moved.scales)
        return (states, total), (counted, kept)

    nothing = jax.tree.map(jnp.zeros_like, sweep.reference.position)
    numbers = jnp.arange(LENGTH)
    (states, total), (counted, kept) = jax.lax.scan(step, (states, nothing), (numbers, keys))
    counted = jax.tree.map(lambda leaf: leaf[skipped:].astype(jnp.float32), counted)
    slopes, scales = jax.tree.map(lambda leaf: leaf[skipped:], kept)
    averages = jax.tree.map(jnp.mean, counted)

    def share(visit: Any) -> Scalar:
        return visit[0] / jnp.maximum(visit[1], 1e-6)

    flat = lambda leaf: leaf.reshape(-1, leaf.shape[-1])  # noqa: E731
    return states, Pilot(
        averages["acceptance"],
        averages["effect_rates"],
        averages["scale_rates"],
        share(averages["slopes"]),
        tuple(map(share, averages["effects"])),
        tuple(map(share, averages["scales"])),
        averages["slopes"][2],
        tuple(visit[2] for visit in averages["effects"]),
        tuple(visit[2] for visit in averages["scales"]),
        averages["mean_rate"],
        share(averages["means"]),
        averages["means"][2],
        counted["broken_bound"].max(),
        jax.tree.map(lambda leaf: leaf / (LENGTH - skipped), total),
        flat(slopes).mean(axis=0),
        flat(slopes).std(axis=0),
        tuple(flat(each).mean(axis=0) for each in scales),
        tuple(flat(each).std(axis=0) for each in scales),
    )


def _counted(moves: EffectMoves) -> dict[str, Any]:
    def of(visit: Visit) -> tuple[Array, Array, Array]:
        return visit.squares, visit.num_arrivals, visit.num_examples

    is_finite = jnp.isfinite(moves.log_ratio)
    return {
        "acceptance": jnp.where(is_finite, jnp.exp(jnp.minimum(moves.log_ratio, 0.0)), 0.0),
        "effect_rates": moves.effect_rates,
        "scale_rates": moves.scale_rates,
        "slopes": of(moves.slopes),
        "effects": tuple(map(of, moves.effects)),
        "scales": tuple(map(of, moves.scales)),
        "means": of(moves.means),
        "mean_rate": moves.mean_rate,
        "broken_bound": moves.broken_bound,
    }


@jit(ONCE)
def positions_of(sweep: EffectSweep, states: EffectState) -> Any:
    return jax.vmap(sweep.position)(states)


@jit(ONCE)
def _remembered(target: Posterior, sweep: EffectSweep, positions: Any) -> EffectState:
    return jax.vmap(lambda at: sweep.remember(target, at))(positions)


def _starts(target: Posterior, sweep: EffectSweep, key: RandomKey) -> EffectState:
    widths = tuple(jnp.full(each.center.shape[1], each.stride / STRIDE) for each in sweep.factors)
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
    slopes = jax.random.normal(slope_key, sweep.slope.shape)
    state = state._replace(slopes=width * slopes)
    for number in range(len(sweep.factors)):
        scales, free = state.scales[number], state.free[number]
        away = (
            width
            * scale_widths[number]
            * jax.random.truncated_normal(keys[2 * number], -2.0, 2.0, scales.shape)
        )
        state = state.with_scales(number, scales + away, free)
    for number in range(len(sweep.factors)):
        known = sweep.conditional(number, state, precision_of(state, number))
        shape = state.effects[number].shape
        # of ten thousand some would be farther out than a chain comes home from in a warm-up
        drawn = jax.random.truncated_normal(keys[2 * number + 1], -2.0, 2.0, shape)
        state = state.with_effects(number, known.mean + solve_upper(known.factor, drawn))
    if sweep.bounds is None:
        rows = jnp.maximum(sweep.num_rows, 1.0)
        state = state._replace(noise=width * jax.random.normal(noise_key) * (0.5 / rows) ** 0.5)
    return state
