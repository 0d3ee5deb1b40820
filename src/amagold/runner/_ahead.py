"""Transitions with their rows brought ahead: one exchange for many, where rows are elsewhere.

Which rows a transition reads follows from its randomness, but for the few tests that need more than
their first candidates. A device whose chains meet one stops there, and waits for the next exchange,
which begins with that transition made by all devices together. Nothing is cut short and no
transition is skipped, so the draws are those of a run in which every row is at hand.
"""

from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.data import Spread
from amagold.runner._block import (
    CHAIN_AXES,
    Advanced,
    Hook,
    Kept,
    energies,
    transition_keys,
    with_chains,
    without_chains,
)
from amagold.runner._layout import Layout
from amagold.samplers import Info, Randomness, Sampler, State


class At(NamedTuple):
    """Where the chains of a device are."""

    states: State
    done: jax.Array  # transitions
    waits: jax.Array  # for a transition that needs more rows than were brought
    infos: Info  # of the transitions since the last kept draw
    kept: Kept


class Delivery(NamedTuple):
    """Some transitions' randomness, and the rows that it names."""

    drawn: Randomness
    rows: Any
    brought: Any  # for the test

    def at(self, number: Any) -> "Delivery":
        return jax.tree.map(
            lambda leaf: jax.lax.dynamic_index_in_dim(leaf, number, keepdims=False), self
        )


def chunk_ahead(
    sampler: Sampler,
    key: jax.Array,
    chains: jax.Array,
    carry: tuple[State, Hook],
    first: jax.Array,
    count: jax.Array,
    layout: Layout,
    data: Spread,
) -> Advanced:
    """The first `count` draws of a chunk; each exchange brings the rows of a block of them."""
    states, hook = carry
    alone = chains.shape[0] == 1
    chain_keys = jax.vmap(lambda chain: jax.random.fold_in(key, chain))(chains)
    one = jax.tree.map(lambda leaf: leaf[0], states.position)
    in_block = layout.num_kept * layout.thin
    needed = count * jnp.uint32(layout.thin)
    if alone:
        states = without_chains(states)

    def deliver(done: jax.Array) -> Delivery:
        keys = transition_keys(chain_keys, first + done, in_block)
        draw = partial(sampler.draw, position=one, late=layout.late)
        if alone:
            drawn = jax.vmap(draw)(keys[:, 0])
        else:
            drawn = jax.vmap(jax.vmap(draw, out_axes=CHAIN_AXES))(keys)
        bring = jax.vmap(partial(sampler.acceptance.bring, sampler.target))
        test = drawn.test
        brought = bring(test) if alone else jax.vmap(bring)(test)
        return Delivery(drawn, sampler.gather(drawn), brought)

    def together(at: At, now: Delivery) -> At:
        """A transition of all devices' chains, with as many exchanges as it takes."""
        advance = sampler.advance if alone else jax.vmap(sampler.advance, in_axes=(0, CHAIN_AXES))
        states, info = advance(at.states, now.drawn)
        return _after(at, states, info, at.done < needed)

    def on_its_own(at: At, now: Delivery) -> At:
        advance = sampler.advance_from
        if not alone:
            advance = jax.vmap(advance, in_axes=(0, CHAIN_AXES, 1, 0))
        states, info, is_decided = advance(at.states, now.drawn, now.rows, now.brought)
        is_decided = jnp.all(is_decided)
        return _after(at, states, info, is_decided)._replace(waits=~is_decided)

    def _after(at: At, states: State, info: Info, is_made: jax.Array) -> At:
        """What a transition leaves, if it was made."""
        infos, kept = at.infos, at.kept
        if layout.thin > 1:
            place = at.done % jnp.uint32(layout.thin)
            infos = _written(infos, info, place)
            info = infos.reduced()
        energy = energies(sampler, states, chains.shape[0]) if layout.energy else ()
        position = states.position if layout.position else ()
        draw = at.done // jnp.uint32(layout.thin)
        kept = _written(kept, Kept(position, info, energy), draw)
        moved = At(states, at.done + jnp.uint32(1), jnp.bool_(False), infos, kept)
        return trees.where(is_made, moved, at)

    def block(at: At) -> At:
        delivery = deliver(at.done)
        someone_waits = data.anyone(at.waits)
        at = jax.lax.cond(someone_waits, lambda at: together(at, delivery.at(0)), lambda at: at, at)

        def goes_on(now: tuple[jax.Array, At]) -> jax.Array:
            number, at = now
            return (number < in_block) & (at.done < needed) & ~at.waits

        def step(now: tuple[jax.Array, At]) -> tuple[jax.Array, At]:
            number, at = now
            return number + 1, on_its_own(at, delivery.at(number))

        return jax.lax.while_loop(goes_on, step, (someone_waits.astype(jnp.int32), at))[1]

    at = jax.lax.while_loop(
        lambda now: now[0],
        lambda now: (lambda at: (data.anyone(at.done < needed), at))(block(now[1])),
        (data.anyone(needed > 0), _begin(sampler, states, chains.shape[0], layout, alone)),
    )[1]
    states, kept = at.states, at.kept
    if alone:
        states, kept = with_chains(states), jax.tree.map(lambda leaf: leaf[:, None], kept)
    return Advanced(states, kept, hook, ())


def _begin(sampler: Sampler, states: State, num_chains: int, layout: Layout, alone: bool) -> At:
    """Before the first transition, with room for all that will be kept."""
    lead = () if alone else (num_chains,)

    def form() -> tuple[Info, Any]:
        key = jax.random.key(0)
        one = states if alone else without_chains(states)
        drawn = sampler.draw(key, one.position, layout.late)
        info = sampler.advance(one, drawn)[1]
        return info, sampler.acceptance.energy(one.memory) if layout.energy else ()

    info, energy = jax.eval_shape(form)
    room = layout.num_blocks * layout.num_kept

    def zeros(length: int, leaf: Any) -> jax.Array:
        return jnp.zeros((length, *lead, *leaf.shape), leaf.dtype)

    infos = jax.tree.map(partial(zeros, layout.thin), info) if layout.thin > 1 else info
    reduced = jax.eval_shape(infos.reduced) if layout.thin > 1 else None
    position = jax.tree.map(
        lambda leaf: jnp.zeros((room, *leaf.shape), leaf.dtype),
        states.position if layout.position else (),
    )
    of_info = (
        jax.tree.map(partial(zeros, room), info)
        if reduced is None
        else jax.tree.map(lambda leaf: jnp.zeros((room, *leaf.shape), leaf.dtype), reduced)
    )
    kept = Kept(position, of_info, jax.tree.map(partial(zeros, room), energy))
    nothing = infos if layout.thin > 1 else ()
    return At(states, jnp.uint32(0), jnp.bool_(False), nothing, kept)  # type: ignore[arg-type]


def _written(into: Any, value: Any, place: jax.Array) -> Any:
    return jax.tree.map(
        lambda leaf, one: jax.lax.dynamic_update_index_in_dim(leaf, one, place, 0), into, value
    )
