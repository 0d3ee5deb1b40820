"""What pilots choose for a sweep over effects: how long its moves may be, how much noise its tests
may have, and whether the reference lies where chains are.

Whatever they choose is frozen before the first draw that is kept, and any choice is exact.
"""

import dataclasses
import itertools
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.acceptance._effect_pilot import Pilot, pilot, together
from amagold.acceptance._effect_setup import untuned_effects
from amagold.acceptance._effect_starts import pilot_starts, positions_of, remembered
from amagold.acceptance._effect_state import EffectState
from amagold.acceptance._effect_sweep import EffectSweep
from amagold.core.shapes import RandomKey
from amagold.mode._effect_sums import EffectSums, sums_at
from amagold.target import Posterior

NOISE = 0.25  # variance that arrivals may bring to log a
MANY = 4  # pilots that say together where chains are
# of the slopes, tried from the largest; the first that is accepted often enough is taken
ANGLES = (math.pi / 2.0, 1.1, 0.8, 0.55, 0.35, 0.2, 0.1)
OFTEN_ENOUGH = 0.5
WANTED = 0.35  # of the scales' walk, accepted
NEAR, MOST_TRIALS = 0.35, 4  # how near in its logarithm, and how often strides are tried for it
FAR = 0.5  # standard deviations between chains and the reference, beyond which it moves
SMALLEST_BLOCK, LARGEST_BLOCK = 64, 512
MOST_APART = 2.0  # logarithms of the strides of one factor's scales
MOST_MOVES = 2  # of the reference
MOST_TURNS = 6  # of what all levels share, in a sweep
# effective draws of a horseshoe's log tau by a turn, with some tens of coefficients
TAU_RENEWED = 0.1


class TunedEffects(NamedTuple):
    sweep: EffectSweep
    pilot: Pilot
    num_passes: int  # over the data, the pilots' own


def tuned_effects(target: Posterior, sums: EffectSums, key: RandomKey) -> TunedEffects:
    """The sweep about a reference, or about another where chains turn out to be elsewhere."""
    sweep, passes = _sized(untuned_effects(target, sums)), 1
    keys = (jax.random.fold_in(key, number) for number in itertools.count())
    states = pilot_starts(target, sweep, next(keys))
    found = None
    for moves in range(MOST_MOVES + 1):
        sweep, states, found = _tuned(target, sweep, states, keys)
        parts = []
        for _ in range(MANY):
            states, found = pilot(target, sweep, states, next(keys))
            parts.append(found)
        found = together(parts)
        if moves == MOST_MOVES or sweep.bounds is None or not _is_far(sweep, found):
            break
        place = {name: np.asarray(values) for name, values in found.mean.items()}
        positions = positions_of(sweep, states)
        there = _sized(untuned_effects(target, sums_at(target, place)))
        sweep, passes = _like(there, sweep), passes + 2
        states = remembered(target, sweep, positions)
    assert found is not None
    return TunedEffects(_with_turns(sweep, found), found, passes)


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
    # of one scale the width was known beforehand
    has_several = any(terms.form.num_effects > 1 for terms in sweep.factors)
    for _ in range(MOST_TRIALS if has_several else 0):
        states, found = pilot(target, sweep, states, next(keys))
        if np.all(np.abs(np.log(found.scale_rates) - math.log(WANTED)) < NEAR):
            break
        sweep = _with_strides(sweep, found)
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
    """Longer where walks are accepted often, shorter where they are not; and as much longer for one
    number than for another as chains are wider in it.
    """
    factors = []
    for number, (terms, rate) in enumerate(zip(sweep.factors, found.scale_rates, strict=True)):
        factor = math.exp(max(-1.2, min(1.2, 2.0 * (float(rate) - WANTED) / WANTED)))
        widths = np.concatenate([found.scale_widths[number], found.free_widths[number]])
        logs = np.log(np.maximum(widths, 1e-6))
        apart = np.clip(logs - logs.mean(), -MOST_APART, MOST_APART)
        stride = factor * np.exp(np.log(terms.stride).mean() + apart)
        factors.append(dataclasses.replace(terms, stride=jnp.asarray(stride, jnp.float32)))
    return dataclasses.replace(sweep, factors=tuple(factors))


def _with_turns(sweep: EffectSweep, found: Pilot) -> EffectSweep:
    """As often as levels renew faster than what they share, for no more rows than the rest has."""
    if sweep.bounds is None:
        return sweep if sweep.shrunk is None else dataclasses.replace(sweep, num_turns=MOST_TURNS)
    shared = [float(found.acceptance) * (1.0 - math.cos(float(sweep.angle)))]
    if sweep.means is not None:
        shared.append(float(found.mean_rate))
    slowest = max(renewed(min(shared)), 1e-3)
    if sweep.shrunk is not None:
        slowest = min(slowest, TAU_RENEWED)
    rest = float(np.sum(found.effect_rows) + np.sum(found.scale_rows))
    affordable = rest / max(float(found.slope_rows + found.mean_rows), 1e-3)
    of_levels = min(renewed(float(rate)) for rate in found.effect_rates)
    turns = min(of_levels / slowest, affordable, MOST_TURNS)
    return dataclasses.replace(sweep, num_turns=max(1, int(turns)))


def renewed(rate: float) -> float:
    """Effective draws for each transition that leaves the autocorrelation R = 1 - rate:
    (1 - R) / (1 + R).
    """
    return rate / (2.0 - rate)


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
