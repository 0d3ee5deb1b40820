"""A run, chunk by chunk: what the device made of one is on the host before the next is done."""

from collections.abc import Callable, Iterator

import jax
import numpy as np

from amagold.runner._block import Kept
from amagold.runner._layout import KEPT_BYTES, MAX_CHUNK, Layout, most_ahead, plan_layout
from amagold.runner._placed_chains import place
from amagold.samplers import Sampler, State


def run_chunks(
    sampler: Sampler,
    key: jax.Array,
    states: State,
    num_samples: int,
    *,
    thin: int = 1,
    first: int = 0,
    chunk_bytes: int = KEPT_BYTES,
    keep_energy: bool = False,
    at_once: int | None = None,
    most_draws: int | None = None,
    should_stop: Callable[[], bool] = lambda: False,
) -> Iterator[tuple[State, Kept]]:
    """Run chains from stacked states and yield (states, kept draws) chunk by chunk.

    Args:
      key: one key; each chain and each transition derive their own from it.
      states: `State`s stacked on a leading chain axis.
      num_samples: draws kept per chain.
      thin: transitions per kept draw.
      first: the number of the first transition in the whole run, to go on where another run
        stopped.
      chunk_bytes: budget for the draws that one chunk keeps on a device. It does not show in the
        draws.
      keep_energy: whether to keep U of every draw too.
      at_once: draws in a chunk, for a short run without thinning that can use a program already
        compiled; None follows the budget.
      most_draws: in a chunk, by the program that would make more of them.
      should_stop: asked while a draw takes several chunks; if it says so, the unfinished draw is
        dropped.
    """
    if num_samples == 0:
        return
    chains, states = place(sampler, key, states)
    most_in_block = MAX_CHUNK
    if chains.goes_ahead:
        chunk_bytes //= thin  # what is brought ahead keeps all transitions until the chunk ends
        # every device answers the chains of all
        most_in_block = most_ahead(sampler, states, len(chains.numbers))
    layout = plan_layout(
        sampler,
        states,
        num_samples,
        thin,
        chains.num_devices,
        chunk_bytes,
        at_once,
        most_in_block,
    )._replace(energy=keep_energy)

    def advance(states: State, at: int, count: int, layout: Layout) -> tuple[State, Kept]:
        return chains.advance(states, at, count, layout)[:2]

    done, at = 0, first
    while done < num_samples:
        if (
            layout.thin < thin
        ):  # one kept draw takes several chunks, each of which keeps nothing but its end
            left = thin
            kept = None
            while left:
                if should_stop():
                    return
                part = layout._replace(thin=min(left, layout.thin))
                states, piece = advance(states, at, 1, part)
                kept = piece if kept is None else _join(kept, piece, thin - left, part.thin)
                left, at = left - part.thin, at + part.thin
                jax.block_until_ready(states)  # or the question would come long before the work
            assert kept is not None
            count = 1
        else:
            room = layout.num_blocks * layout.num_kept
            count = min(room, num_samples - done, most_draws or room)
            states, kept = advance(states, at, count, layout)
            if count < room:
                kept = jax.tree.map(lambda leaf, count=count: np.asarray(leaf)[:count], kept)
            at += count * thin
        done += count
        yield states, kept


def _join(earlier: Kept, later: Kept, before: int, now: int) -> Kept:
    """The later piece, with its Info covering the earlier one too."""
    return Kept(later.position, earlier.info.joined(later.info, before, now), later.energy)
