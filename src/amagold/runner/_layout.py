"""How a run is cut into chunks and blocks, so that memory stays bounded and progress shows."""

from typing import Any, NamedTuple

import jax

from amagold.core import trees
from amagold.samplers import Sampler, State

KEPT_BYTES = 32 * 2**20  # the draws that one chunk keeps on a device until the host takes them
# the randomness of one block on a device: about what the processor's cache holds
BLOCK_BYTES = 2 * 2**20
INFO_BYTES = 32  # one Info
MAX_CHUNK = 100_000  # transitions in one chunk
MOST_AHEAD = 1024  # transitions, and bytes of rows of all chains, that one exchange may bring
AHEAD_BYTES = 64 * 2**20
# parameters x examples visited in one chunk: some seconds, so that progress shows and a run can be
# stopped
MAX_WORK = 10**10


class Layout(NamedTuple):
    """How a run is cut: chunks of up to `num_blocks` blocks of `num_kept` draws of `thin`
    transitions.

    A chunk may end before its last draw, so that one program serves a whole run. With `late`, noise
    is drawn at the step that needs it, not for the block. With `energy`, U is kept of every draw;
    without `position`, the draws themselves are not.
    """

    num_blocks: int
    num_kept: int
    thin: int
    late: bool = False
    energy: bool = False
    position: bool = True


def plan_layout(
    sampler: Sampler,
    states: State,
    num_samples: int,
    thin: int,
    num_devices: int = 1,
    chunk_bytes: int = KEPT_BYTES,
    at_once: int | None = None,
    most_in_block: int = MAX_CHUNK,
) -> Layout:
    """Cut a run so that what a chunk holds on one device stays within the byte budget.

    With `at_once`, and without thinning, a chunk has that many draws whatever they take. A block
    has up to `most_in_block` transitions.

    Whether randomness is drawn late does not depend on the budget or the devices, because it can
    show in the rounding.
    """
    num_chains = jax.tree.leaves(states.position)[0].shape[0]
    chains = num_chains // num_devices
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), states)

    late = sampler.draws_late(one.position, num_chains)
    drawn_bytes = trees.num_bytes(
        jax.eval_shape(lambda key: sampler.draw(key, one.position, late), jax.random.key(0))
    )
    kept_bytes = trees.num_bytes(one.position) + INFO_BYTES
    in_block = max(1, min(BLOCK_BYTES, chunk_bytes) // max(1, chains * drawn_bytes))
    in_block = min(in_block, most_in_block)
    if at_once is not None and thin == 1:
        num_kept = _even_cut(at_once, min(in_block, at_once))
        return Layout(-(-at_once // num_kept), num_kept, 1, late)
    in_chunk = max(
        1,
        min(
            MAX_CHUNK,
            most_transitions(sampler, one.position, chains),
            thin * chunk_bytes // (chains * kept_bytes),
        ),
    )
    transitions = min(in_block, in_chunk, num_samples * thin)
    if transitions < thin:
        return Layout(1, 1, _even_cut(thin, transitions), late)
    num_kept = _even_cut(num_samples, transitions // thin)
    num_blocks = _even_cut(-(-num_samples // num_kept), max(1, in_chunk // (thin * num_kept)))
    return Layout(num_blocks, num_kept, thin, late)


def most_transitions(sampler: Sampler, position: trees.PyTree, num_chains: int) -> int:
    """How many transitions of all chains on a device are short enough for one call."""
    examples = sampler.num_gradient_examples(position) + sampler.num_energy_examples
    return max(1, MAX_WORK // (num_chains * max(1, examples) * trees.size(position)))


def most_ahead(sampler: Sampler, states: State, chains: int) -> int:
    """How many transitions' rows one exchange may bring: enough to hide what it costs, few enough
    that chains seldom have to wait for the next, and no more than there is room for.
    """
    one = jax.tree.map(lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), states)

    def named(key: jax.Array) -> Any:
        drawn = sampler.draw(key, one.position)
        return drawn.batches, sampler.acceptance.foresee(drawn.test)[1]

    num_rows = trees.size(jax.eval_shape(named, jax.random.key(0)))
    row_bytes = trees.num_bytes(sampler.target.examples.example)
    return max(1, min(MOST_AHEAD, AHEAD_BYTES // max(1, chains * num_rows * row_bytes)))


def _even_cut(total: int, most: int) -> int:
    """The size of parts up to `most` that are as few and as even as can be."""
    return -(-total // -(-total // most))
