"""A pilot of a sweep over effects: what some sweeps of some chains did on average."""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.acceptance._effect_state import EffectMoves, EffectState
from amagold.acceptance._effect_sweep import EffectSweep
from amagold.acceptance._group_visit import Visit
from amagold.core.compiling import OFTEN, jit
from amagold.core.shapes import RandomKey, Scalar
from amagold.target import Posterior

LENGTH = 40  # sweeps of one


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
    free_widths: Any  # of correlations


def pilot(
    target: Posterior, sweep: EffectSweep, states: EffectState, key: RandomKey
) -> tuple[EffectState, Pilot]:
    """Some sweeps of some chains; always as many, so that one program does for all."""
    return _pilot(target, sweep, states, jax.random.split(key, LENGTH))


def together(parts: list[Pilot]) -> Pilot:
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
        kept = (moved.slopes, moved.scales, moved.free)
        return (states, total), (counted, kept)

    nothing = jax.tree.map(jnp.zeros_like, sweep.reference.position)
    numbers = jnp.arange(LENGTH)
    (states, total), (counted, kept) = jax.lax.scan(step, (states, nothing), (numbers, keys))
    counted = jax.tree.map(lambda leaf: leaf[skipped:].astype(jnp.float32), counted)
    slopes, scales, free = jax.tree.map(lambda leaf: leaf[skipped:], kept)
    averages = jax.tree.map(jnp.mean, counted)

    def share(visit: Any) -> Scalar:
        return visit[0] / jnp.maximum(visit[1], 1e-6)

    def flat(leaf: Array) -> Array:
        """Sweeps and chains along one axis; of no correlations there are no numbers."""
        return leaf.reshape(leaf.shape[0] * leaf.shape[1], leaf.shape[-1])

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
        tuple(flat(each).std(axis=0) for each in free),
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
