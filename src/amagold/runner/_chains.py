"""Run chains and bring their draws to the host."""

from collections.abc import Callable
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import checks, trees
from amagold.core.compiling import OFTEN, jit
from amagold.runner._block import Kept
from amagold.runner._broken_bounds import check_bounds
from amagold.runner._chunked_run import run_chunks
from amagold.runner._layout import KEPT_BYTES
from amagold.samplers import Info, Sampler, State


class Draws(NamedTuple):
    """Draws on the host, with axes (chain, draw, ...), and the states to go on from."""

    position: trees.PyTree
    info: Info
    states: State


def start_chains(sampler: Sampler, positions: trees.PyTree, key: jax.Array) -> State:
    """States stacked on a leading chain axis, from positions stacked the same way."""
    positions = trees.as_position(positions)
    sampler.check(jax.tree.map(lambda leaf: np.asarray(leaf)[0], positions))
    states, is_finite, is_inside, has_density = _start(sampler, positions, key)
    _every_chain(is_finite, "be finite", "start it from finite numbers")
    _every_chain(is_inside, "lie inside the target's domain", "start it inside")
    _every_chain(has_density, "have a finite log density", "start it where the density is positive")
    return states


@jit(OFTEN)
def _start(
    sampler: Sampler, positions: trees.PyTree, key: jax.Array
) -> tuple[State, jax.Array, jax.Array, jax.Array]:
    """The states, and of each chain whether its start is finite, inside the domain, and of finite
    density.
    """
    num_chains = jax.tree.leaves(positions)[0].shape[0]
    states = jax.vmap(sampler.init)(positions, jax.random.split(key, num_chains))
    has_memory = bool(jax.tree.leaves(states.memory))
    has_density = (
        jax.vmap(trees.all_finite)(states.memory) if has_memory else jnp.ones(num_chains, bool)
    )
    is_inside = jax.vmap(sampler.target.is_inside)(positions)
    return states, jax.vmap(trees.all_finite)(positions), is_inside, has_density


def _every_chain(is_good: jax.Array, must: str, remedy: str) -> None:
    """Raise for the first chain whose start is not good."""
    bad = np.flatnonzero(~np.asarray(is_good))
    if bad.size:
        raise ValueError(
            f"positions must {must}, but the start of chain {bad[0]} fails that; {remedy}"
        )


def run_chains(
    sampler: Sampler,
    key: jax.Array,
    positions: trees.PyTree,
    num_samples: int,
    *,
    num_burn_in: int = 0,
    thin: int = 1,
    chunk_bytes: int = KEPT_BYTES,
    report: Callable[[int], None] | None = None,
) -> Draws:
    """Run one chain from each position, in chunks over all host devices.

    The draws depend on the key alone, not on `chunk_bytes` or the report. For one chain give
    positions a leading axis of 1.

    Args:
      sampler: any sampler of this library.
      key: one key; chains and transitions derive their own from it.
      positions: starting positions stacked on a leading chain axis.
      num_samples: draws kept per chain.
      num_burn_in: draws thrown away first.
      thin: transitions per kept draw.
      chunk_bytes: budget for the draws that one chunk keeps on a device.
      report: called after each chunk with the number of draws done so far, burn-in included.
    """
    checks.whole_number(
        "num_samples", num_samples, at_least=1, remedy="give the number of draws to keep"
    )
    checks.whole_number(
        "num_burn_in",
        num_burn_in,
        at_least=0,
        remedy="give the number of draws to throw away, or 0",
    )
    checks.whole_number(
        "thin", thin, at_least=1, remedy="give the number of transitions per kept draw"
    )
    start_key, run_key = jax.random.split(key)
    states = start_chains(sampler, positions, start_key)
    done = 0

    def tell(kept: Kept) -> None:
        nonlocal done
        done += kept.info.is_accepted.shape[0]
        if report is not None:
            report(done)

    for latest, kept in run_chunks(
        sampler, run_key, states, num_burn_in, thin=thin, chunk_bytes=chunk_bytes
    ):
        states = jax.block_until_ready(latest)
        check_bounds(kept.info)
        tell(kept)
    pieces: list[Kept] = []
    first = num_burn_in * thin
    for latest, kept in run_chunks(
        sampler, run_key, states, num_samples, thin=thin, first=first, chunk_bytes=chunk_bytes
    ):
        states = latest
        pieces.append(jax.tree.map(np.asarray, kept))
        check_bounds(pieces[-1].info)
        tell(kept)
    joined = jax.tree.map(lambda *parts: np.moveaxis(np.concatenate(parts), 0, 1), *pieces)
    return Draws(joined.position, joined.info, jax.tree.map(jnp.asarray, states))
