"""Chunks of transitions, made of blocks: a block's randomness is drawn in one vectorised call, then
a scan only does arithmetic.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as Spec

from amagold.core import trees
from amagold.core.compiling import OFTEN, ONCE, jit
from amagold.samplers import Info, Randomness, Sampler, State

KEPT_BYTES = 32 * 2**20  # the draws that one chunk keeps on a device until the host takes them
# the randomness of one block on a device: about what the processor's cache holds
BLOCK_BYTES = 2 * 2**20
SHARED_BYTES = 2**16  # arrays from this size on are worth sharing between the host's devices
INFO_BYTES = 32  # one Info
MAX_CHUNK = 100_000  # transitions in one chunk
# parameters x examples visited in one chunk: some seconds, so that progress shows and a run can be
# stopped
MAX_WORK = 10**10

Carry = TypeVar("Carry")

# chains come after the steps where there are steps, so that a step's scan reads them without a
# transposition
CHAIN_AXES = Randomness(momentum=0, noise=1, gradient_noise=1, batches=1, test=0, stretch=0)


class Kept(NamedTuple):
    """Draws as they leave a chunk, with axes (draw, chain, ...)."""

    position: trees.PyTree
    info: Info
    energy: Any = ()  # U of each draw, where it was asked for and the test knows it


class Layout(NamedTuple):
    """How a run is cut: chunks of up to `num_blocks` blocks of `num_kept` draws of `thin`
    transitions.

    A chunk may end before its last draw, so that one program serves a whole run. With `late`, noise
    is drawn at the step that needs it, not for the block. With `energy`, U is kept of every draw.
    """

    num_blocks: int
    num_kept: int
    thin: int
    late: bool = False
    energy: bool = False


def plan_layout(
    sampler: Sampler,
    states: State,
    num_samples: int,
    thin: int,
    num_devices: int = 1,
    chunk_bytes: int = KEPT_BYTES,
) -> Layout:
    """Cut a run so that what a chunk holds on one device stays within the byte budget.

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
    examples = sampler.num_steps * sampler.gradient.num_examples(
        sampler.target
    ) + sampler.acceptance.num_examples(sampler.target)
    return max(1, MAX_WORK // (num_chains * max(1, examples) * trees.size(position)))


def _even_cut(total: int, most: int) -> int:
    """The size of parts up to `most` that are as few and as even as can be."""
    return -(-total // -(-total // most))


def transition_keys(chain_keys: jax.Array, first: jax.Array, count: int) -> jax.Array:
    """A key for each transition and chain, by the transition's number in the whole run: chunks do
    not show in the draws.
    """
    numbers = first + jnp.arange(count, dtype=jnp.uint32)
    return jax.vmap(
        lambda number: jax.vmap(lambda key: jax.random.fold_in(key, number))(chain_keys)
    )(numbers)


def _block(
    sampler: Sampler,
    chain_keys: jax.Array,
    states: State,
    first: jax.Array,
    count: jax.Array,
    layout: Layout,
) -> tuple[State, Kept]:
    """The first `count` of `num_kept` draws of `thin` transitions each; a lone chain is run without
    a chain axis, which is faster.
    """
    alone = chain_keys.shape[0] == 1
    one = jax.tree.map(lambda leaf: leaf[0], states.position)
    keys = transition_keys(chain_keys, first, layout.num_kept * layout.thin)
    if alone:
        states, keys = jax.tree.map(lambda leaf: leaf[0], states), keys[:, 0]

    def draw(keys: jax.Array) -> Randomness:
        draw_one = partial(sampler.draw, position=one, late=layout.late)
        return draw_one(keys) if alone else jax.vmap(draw_one, out_axes=CHAIN_AXES)(keys)

    # each step gathers its own rows: gathered ahead for a block, they would leave the processor's
    # cache before they are used
    advance = sampler.advance if alone else jax.vmap(sampler.advance, in_axes=(0, CHAIN_AXES))

    def keep(states: State, info: Info) -> Kept:
        energy = sampler.acceptance.energy
        if not alone:
            # the number of chains is given, because a test may remember nothing that would show it
            energy = jax.vmap(energy, axis_size=chain_keys.shape[0])
        return Kept(states.position, info, energy(states.memory) if layout.energy else ())

    def keep_one(states: State, drawn: Randomness) -> tuple[State, Kept]:
        states, info = advance(states, drawn)
        return states, keep(states, info)

    def keep_last(states: State, drawn: Randomness) -> tuple[State, Kept]:
        states, infos = jax.lax.scan(advance, states, drawn)
        return states, keep(states, infos.reduced())

    drawn = jax.vmap(draw)(keys)
    if layout.thin > 1:
        drawn = jax.tree.map(
            lambda leaf: leaf.reshape(layout.num_kept, layout.thin, *leaf.shape[1:]), drawn
        )
    transition = keep_one if layout.thin == 1 else keep_last
    states, kept = _scan_some(transition, states, drawn, count, layout.num_kept)
    if alone:
        states, kept = (
            jax.tree.map(lambda leaf: leaf[None], states),
            jax.tree.map(lambda leaf: leaf[:, None], kept),
        )
    return states, kept


def _scan_some(
    step: Callable[[Carry, Any], tuple[Carry, Any]],
    carry: Carry,
    inputs: Any,
    count: jax.Array,
    length: int,
) -> tuple[Carry, Any]:
    """`jax.lax.scan` over the first `count` of `length` inputs; what the others would have given is
    zero.
    """

    def at(number: Any) -> Any:
        return jax.tree.map(
            lambda leaf: jax.lax.dynamic_index_in_dim(leaf, number, keepdims=False), inputs
        )

    form = jax.eval_shape(lambda: step(carry, at(0))[1])
    outputs = jax.tree.map(lambda leaf: jnp.zeros((length, *leaf.shape), leaf.dtype), form)

    def body(number: jax.Array, both: tuple[Carry, Any]) -> tuple[Carry, Any]:
        carry, output = step(both[0], at(number))
        write = partial(jax.lax.dynamic_update_index_in_dim, index=number, axis=0)
        return carry, jax.tree.map(write, both[1], output)

    return jax.lax.fori_loop(jnp.uint32(0), count, body, (carry, outputs))


def _chunk(
    sampler: Sampler,
    key: jax.Array,
    chains: jax.Array,
    states: State,
    first: jax.Array,
    count: jax.Array,
    layout: Layout,
) -> tuple[State, Kept]:
    """The first `count` draws of `num_blocks` blocks, one after the other."""
    chain_keys = _keys_of(key, chains)
    if layout.num_blocks == 1:
        return _block(sampler, chain_keys, states, first, count, layout)
    in_block = jnp.uint32(layout.num_kept)

    def block(states: State, number: jax.Array) -> tuple[State, Kept]:
        before = number * in_block
        left = jnp.minimum(count - before, in_block)
        return _block(
            sampler, chain_keys, states, first + before * jnp.uint32(layout.thin), left, layout
        )

    numbers = jnp.arange(layout.num_blocks, dtype=jnp.uint32)
    needed = (count + in_block - jnp.uint32(1)) // in_block
    states, kept = _scan_some(block, states, numbers, needed, layout.num_blocks)
    return states, jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), kept)


@jit(OFTEN, "layout", "mesh")
def _run_chunk(
    sampler: Sampler,
    key: jax.Array,
    chains: jax.Array,
    states: State,
    first: Any,
    count: Any,
    layout: Layout,
    mesh: Mesh | None,
) -> tuple[State, Kept]:
    if mesh is None:
        return _chunk(sampler, key, chains, states, first, count, layout)
    chain, shared = Spec("chain"), Spec()
    split = jax.shard_map(
        partial(_chunk, layout=layout),
        mesh=mesh,
        in_specs=(shared, shared, chain, chain, shared, shared),
        out_specs=(chain, Spec(None, "chain")),
        check_vma=False,
    )
    return split(sampler, key, chains, states, first, count)


def chain_mesh(num_chains: int) -> Mesh | None:
    """The devices that chains are spread over: as many as divide the number of chains; None for
    one.
    """
    devices = jax.devices()
    usable = max(count for count in range(1, len(devices) + 1) if num_chains % count == 0)
    return None if usable == 1 else Mesh(np.array(devices[:usable]), ("chain",))


@jit(ONCE, "num_chains")
def chain_keys_of(key: jax.Array, num_chains: int) -> jax.Array:
    """A key for each chain."""
    return _keys_of(key, jnp.arange(num_chains, dtype=jnp.uint32))


def _keys_of(key: jax.Array, chains: jax.Array) -> jax.Array:
    return jax.vmap(lambda chain: jax.random.fold_in(key, chain))(chains)


def spread(mesh: Mesh | None, by_chain: Any, shared: Any) -> tuple[Any, Any]:
    """Put what has a leading chain axis onto the devices chain by chain, and the rest onto each of
    them.
    """
    if mesh is None:
        return by_chain, shared
    # from one device to many JAX compiles a program for every shape; from the host's memory it
    # needs none
    by_chain = jax.tree.map(partial(_as_host_memory, at_least=0), by_chain)
    shared = jax.tree.map(_as_host_memory, shared)
    return jax.device_put(by_chain, NamedSharding(mesh, Spec("chain"))), jax.device_put(
        shared, NamedSharding(mesh, Spec())
    )


def _as_host_memory(leaf: Any, at_least: int = SHARED_BYTES) -> Any:
    """Large arrays in the host's memory as NumPy sees them: all host devices then share them, where
    device to device they are copied.
    """
    if (
        not isinstance(leaf, jax.Array)
        or jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        or len(leaf.devices()) > 1
    ):
        return leaf
    is_on_host = all(device.platform == "cpu" for device in leaf.devices())
    return np.asarray(leaf) if is_on_host and leaf.nbytes >= at_least else leaf


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
      should_stop: asked while a draw takes several chunks; if it says so, the unfinished draw is
        dropped.
    """
    if num_samples == 0:
        return
    num_chains = jax.tree.leaves(states.position)[0].shape[0]
    mesh = chain_mesh(num_chains)
    if at_once is not None and thin == 1:
        one = jax.tree.map(
            lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), states.position
        )
        layout = Layout(1, at_once, 1, sampler.draws_late(one, num_chains), keep_energy)
    else:
        num_devices = 1 if mesh is None else mesh.size
        layout = plan_layout(sampler, states, num_samples, thin, num_devices, chunk_bytes)._replace(
            energy=keep_energy
        )
    chains = np.arange(num_chains, dtype=np.uint32)
    (chains, states), (sampler, key) = spread(mesh, (chains, states), (sampler, key))

    def advance(states: State, at: int, count: int, layout: Layout) -> tuple[State, Kept]:
        return _run_chunk(
            sampler, key, chains, states, np.uint32(at), np.uint32(count), layout, mesh
        )

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
            count = min(room, num_samples - done)
            states, kept = advance(states, at, count, layout)
            if count < room:
                kept = jax.tree.map(lambda leaf, count=count: np.asarray(leaf)[:count], kept)
            at += count * thin
        done += count
        yield states, kept


def _join(earlier: Kept, later: Kept, before: int, now: int) -> Kept:
    """The later piece, with its Info covering the earlier one too."""
    return Kept(later.position, earlier.info.joined(later.info, before, now), later.energy)
