"""The one driver of transitions: a block's randomness is drawn in one vectorised call, then a loop
only does arithmetic. Warm-up and drawing differ by the hook that follows the transitions.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.runner._layout import Layout
from amagold.samplers import Info, Randomness, Sampler, State

Carry = TypeVar("Carry")


@trees.record()
class Hook:
    """Follows the transitions of all chains, and may set the sampler before each. It is its own
    carry: what it learns is its fields. This one, which drawing has, does nothing.
    """

    def before(self, sampler: Any) -> Any:
        """The sampler that makes the next transition."""
        return sampler

    def after(
        self, sampler: Any, earlier: State, states: State, info: Info, axis_name: str | None
    ) -> tuple["Hook", Any]:
        """The hook for the next transition, and what it notes of this one.

        States before and after it and info have a leading chain axis, of the chains on this
        device; sums over all devices go by `axis_name`. Hook and notes must come out the same on
        every device.
        """
        return self, ()


class Kept(NamedTuple):
    """Draws as they leave a chunk, with axes (draw, chain, ...)."""

    position: trees.PyTree  # empty where it was not asked for
    info: Info
    energy: Any = ()  # U of each draw, where it was asked for and the test knows it


class Advanced(NamedTuple):
    """Chains after some transitions, and what was kept on the way."""

    states: State
    kept: Kept
    hook: Hook
    notes: Any  # of the hook, one for each kept draw


def chunk(
    sampler: Sampler,
    key: jax.Array,
    chains: jax.Array,
    carry: tuple[State, Hook],
    first: jax.Array,
    count: jax.Array,
    layout: Layout,
    axis_name: str | None,
) -> Advanced:
    """The first `count` draws of `num_blocks` blocks, one after the other."""
    chain_keys = jax.vmap(lambda chain: jax.random.fold_in(key, chain))(chains)
    in_block = jnp.uint32(layout.num_kept)

    def block(carry: tuple[State, Hook], number: jax.Array) -> tuple[tuple[State, Hook], Any]:
        before = number * in_block
        return _block(
            sampler,
            chain_keys,
            carry,
            first + before * jnp.uint32(layout.thin),
            jnp.minimum(count - before, in_block),
            layout,
            axis_name,
        )

    if layout.num_blocks == 1:
        (states, hook), (kept, notes) = _block(
            sampler, chain_keys, carry, first, count, layout, axis_name
        )
        return Advanced(states, kept, hook, notes)
    numbers = jnp.arange(layout.num_blocks, dtype=jnp.uint32)
    needed = (count + in_block - jnp.uint32(1)) // in_block
    (states, hook), both = _scan_some(block, carry, numbers, needed, layout.num_blocks)
    kept, notes = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[2:]), both)
    return Advanced(states, kept, hook, notes)


def _block(
    sampler: Sampler,
    chain_keys: jax.Array,
    carry: tuple[State, Hook],
    first: jax.Array,
    count: jax.Array,
    layout: Layout,
    axis_name: str | None,
) -> tuple[tuple[State, Hook], tuple[Kept, Any]]:
    """The first `count` of `num_kept` draws of `thin` transitions each; a lone chain is run without
    a chain axis, which is faster.
    """
    states, hook = carry
    alone = chain_keys.shape[0] == 1
    one = jax.tree.map(lambda leaf: leaf[0], states.position)
    keys = transition_keys(chain_keys, first, layout.num_kept * layout.thin)
    if alone:
        states, keys = without_chains(states), keys[:, 0]

    def draw(keys: jax.Array) -> Randomness:
        draw_one = partial(sampler.draw, position=one, late=layout.late)
        return draw_one(keys) if alone else jax.vmap(draw_one, out_axes=sampler.chain_axes)(keys)

    def transition(
        carry: tuple[State, Hook], drawn: Randomness
    ) -> tuple[tuple[State, Hook], tuple[Info, Any]]:
        earlier, hook = carry
        now = hook.before(sampler)
        # each step gathers its own rows: gathered ahead for a block, they would leave the
        # processor's cache before they are used
        advance = now.advance if alone else jax.vmap(now.advance, in_axes=(0, sampler.chain_axes))
        states, info = advance(earlier, drawn)
        seen = with_chains((earlier, states, info)) if alone else (earlier, states, info)
        hook, note = hook.after(sampler, seen[0], seen[1], seen[2], axis_name)
        return (states, hook), (info, note)

    def keep(
        carry: tuple[State, Hook], info: Info, note: Any
    ) -> tuple[tuple[State, Hook], tuple[Kept, Any]]:
        states, _ = carry
        energy = energies(sampler, states, chain_keys.shape[0]) if layout.energy else ()
        position = states.position if layout.position else ()
        return carry, (Kept(position, info, energy), note)

    def keep_one(carry: tuple[State, Hook], drawn: Randomness) -> Any:
        carry, (info, note) = transition(carry, drawn)
        return keep(carry, info, note)

    def keep_last(carry: tuple[State, Hook], drawn: Randomness) -> Any:
        carry, (infos, notes) = jax.lax.scan(transition, carry, drawn)
        return keep(carry, infos.reduced(), jax.tree.map(lambda leaf: leaf[-1], notes))

    drawn = jax.vmap(draw)(keys)
    if layout.thin > 1:
        drawn = jax.tree.map(
            lambda leaf: leaf.reshape(layout.num_kept, layout.thin, *leaf.shape[1:]), drawn
        )
    (states, hook), (kept, notes) = _scan_some(
        keep_one if layout.thin == 1 else keep_last, (states, hook), drawn, count, layout.num_kept
    )
    if alone:
        states, kept = with_chains(states), jax.tree.map(lambda leaf: leaf[:, None], kept)
    return (states, hook), (kept, notes)


def energies(sampler: Sampler, states: State, num_chains: int) -> Any:
    """U of each chain, where the test knows it; a lone one's without a chain axis."""
    if num_chains == 1:
        return sampler.energy(states)
    # the number of chains is given, because a test may remember nothing that would show it
    return jax.vmap(sampler.energy, axis_size=num_chains)(states)


def with_chains(one: Any) -> Any:
    return jax.tree.map(lambda leaf: jnp.asarray(leaf)[None], one)


def without_chains(stacked: Any) -> Any:
    return jax.tree.map(lambda leaf: leaf[0], stacked)


def transition_keys(chain_keys: jax.Array, first: jax.Array, count: int) -> jax.Array:
    """A key for each transition and chain, by the transition's number in the whole run: chunks do
    not show in the draws.
    """
    numbers = first + jnp.arange(count, dtype=jnp.uint32)
    return jax.vmap(
        lambda number: jax.vmap(lambda key: jax.random.fold_in(key, number))(chain_keys)
    )(numbers)


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

    # traced once for its form and for the loop; inlined, so that the program stays the same
    step = jax.jit(step, inline=True)
    form = jax.eval_shape(lambda: step(carry, at(0))[1])
    outputs = jax.tree.map(lambda leaf: jnp.zeros((length, *leaf.shape), leaf.dtype), form)

    def body(number: jax.Array, both: tuple[Carry, Any]) -> tuple[Carry, Any]:
        carry, output = step(both[0], at(number))
        write = partial(jax.lax.dynamic_update_index_in_dim, index=number, axis=0)
        return carry, jax.tree.map(write, both[1], output)

    return jax.lax.fori_loop(jnp.uint32(0), count, body, (carry, outputs))
