"""Transitions with their rows brought ahead: one exchange for many, where rows are elsewhere.

Which rows a transition reads follows from its randomness, but for the few tests that need more than
their first candidates. A chain that meets one waits there for the next exchange, which begins with
a transition that all chains make together. Nothing is cut short and no transition is skipped, so
the draws are those of a run in which every row is at hand.
"""

import math
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from amagold.data import OnHost, Spread
from amagold.runner._block import (
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
from amagold.samplers._amortized import CHAIN_AXES
from amagold.target import Posterior


class At(NamedTuple):
    """Where the chains of a device are, each at its own transition."""

    states: State
    done: jax.Array  # transitions of each chain
    waits: jax.Array  # which chains need more rows than were brought


class Delivery(NamedTuple):
    """Some transitions' randomness, and the rows that it names."""

    drawn: Randomness
    rows: Any  # of the gradients
    foreseen: Any  # what the tests begin with
    test_rows: Any

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
    data: Spread | OnHost,
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
        numbers = first + done
        if alone:
            keys = transition_keys(chain_keys, numbers, in_block)
        else:
            own = jax.vmap(lambda key, at: transition_keys(key[None], at, in_block), out_axes=1)
            keys = own(chain_keys, numbers)[:, :, 0]
        draw = partial(sampler.draw, position=one, late=layout.late)
        if alone:
            drawn = jax.vmap(draw)(keys[:, 0])
        else:
            drawn = jax.vmap(jax.vmap(draw, out_axes=CHAIN_AXES))(keys)
        # the sizes are given, because a test may have no randomness that would show them
        foresee = jax.vmap(sampler.acceptance.foresee, axis_size=chains.shape[0])
        foreseen, numbers = jax.vmap(
            sampler.acceptance.foresee if alone else foresee, axis_size=in_block
        )(drawn.test)
        # in one exchange, for what it costs, and because exchanges must come in one order
        rows, test_rows = _rows_of(sampler, (drawn.batches, numbers))
        return Delivery(drawn, rows, foreseen, test_rows)

    def together(at: At, now: Delivery) -> tuple[At, Kept]:
        """A transition of all devices' chains, with as many exchanges as it takes."""
        advance = sampler.advance if alone else jax.vmap(sampler.advance, in_axes=(0, CHAIN_AXES))
        states, info = advance(at.states, now.drawn)
        return after(at, states, info, at.done < needed)

    def on_its_own(at: At, now: Delivery) -> tuple[At, Kept]:
        advance = sampler.advance_from
        if not alone:
            advance = jax.vmap(advance, in_axes=(0, CHAIN_AXES, 1, 0, 0))
        states, info, is_decided = advance(
            at.states, now.drawn, now.rows, now.foreseen, now.test_rows
        )
        goes = (at.done < needed) & ~at.waits
        made, kept = after(at, states, info, goes & is_decided)
        return made._replace(waits=at.waits | (goes & ~is_decided)), kept

    def after(at: At, states: State, info: Info, is_made: jax.Array) -> tuple[At, Kept]:
        """The chains, of which some have made a transition, and what it leaves."""
        energy = energies(sampler, states, chains.shape[0]) if layout.energy else ()
        kept = Kept(states.position if layout.position else (), info, energy)
        states = _where(is_made, states, at.states)
        return At(states, at.done + is_made.astype(jnp.uint32), at.waits & ~is_made), kept

    def block(now: tuple[jax.Array, At, Kept]) -> tuple[jax.Array, At, Kept]:
        (_, someone_waits), before, kept = now
        delivery = deliver(before.done)
        blank = _room_for(together, before, delivery, in_block)
        at, made = jax.lax.cond(
            someone_waits,
            lambda at: _kept_at(0, blank, *together(at, delivery.at(0))),
            lambda at: (at, blank),
            before,
        )

        def goes_on(now: tuple[jax.Array, At, Kept]) -> jax.Array:
            number, at, _ = now
            return (number < in_block) & jnp.any((at.done < needed) & ~at.waits)

        def step(now: tuple[jax.Array, At, Kept]) -> tuple[jax.Array, At, Kept]:
            number, at, made = now
            return number + 1, *_kept_at(number, made, *on_its_own(at, delivery.at(number)))

        begin = (someone_waits.astype(jnp.int32), at, made)
        _, at, made = jax.lax.while_loop(goes_on, step, begin)
        # what a chain did not make is written over by the next block, or lies beyond the end
        kept = _put(kept, made, before.done) if alone else _put_each(kept, made, before.done)
        flags = jnp.stack([jnp.any(at.done < needed), jnp.any(at.waits)])
        return data.anyone(flags), at, kept

    at = At(
        states,
        jnp.zeros(() if alone else chains.shape, jnp.uint32),
        jnp.zeros(() if alone else chains.shape, bool),
    )
    num_draws = layout.num_blocks * layout.num_kept

    def _with_room(shape: tuple[int, ...], room: int) -> tuple[int, ...]:
        return (room, *shape) if alone else (shape[0], room, *shape[1:])

    form = jax.eval_shape(lambda: together(at, deliver(at.done).at(0))[1])
    room = num_draws * layout.thin + in_block
    kept = jax.tree.map(lambda leaf: jnp.zeros(_with_room(leaf.shape, room), leaf.dtype), form)
    flags = jnp.stack([needed > 0, jnp.bool_(False)])  # go on, and someone waits
    _, at, kept = jax.lax.while_loop(lambda now: now[0][0], block, (flags, at, kept))
    if not alone:
        kept = jax.tree.map(lambda leaf: jnp.swapaxes(leaf, 0, 1), kept)
    kept = _thinned(kept, num_draws, layout.thin)
    states = at.states
    if alone:
        states, kept = with_chains(states), jax.tree.map(lambda leaf: leaf[:, None], kept)
    return Advanced(states, kept, hook, ())


def _thinned(kept: Kept, num_draws: int, thin: int) -> Kept:
    """Of every draw its last transition, and of all its transitions what they say together."""
    kept = jax.tree.map(
        lambda leaf: leaf[: num_draws * thin].reshape(num_draws, thin, *leaf.shape[1:]), kept
    )
    position, energy = jax.tree.map(lambda leaf: leaf[:, -1], (kept.position, kept.energy))
    if thin == 1:
        return Kept(position, jax.tree.map(lambda leaf: leaf[:, 0], kept.info), energy)
    return Kept(position, jax.vmap(lambda infos: infos.reduced())(kept.info), energy)


def _room_for(make: Any, at: At, delivery: Delivery, count: int) -> Kept:
    """Zeros for what so many transitions leave."""
    form = jax.eval_shape(lambda: make(at, delivery.at(0))[1])
    return jax.tree.map(lambda leaf: jnp.zeros((count, *leaf.shape), leaf.dtype), form)


def _kept_at(number: Any, room: Kept, at: At, kept: Kept) -> tuple[At, Kept]:
    return at, jax.tree.map(
        lambda leaf, one: jax.lax.dynamic_update_index_in_dim(leaf, one, number, 0), room, kept
    )


def _put_each(into: Kept, block: Kept, starts: jax.Array) -> Kept:
    """The same for every chain from its own start; chains come first in what is written into."""

    def put(chain: jax.Array, into: Kept) -> Kept:
        return jax.tree.map(
            lambda leaf, rows: jax.lax.dynamic_update_slice(
                leaf,
                jax.lax.dynamic_index_in_dim(rows, chain, 1, keepdims=False)[None],
                (chain, starts[chain].astype(jnp.int32), *[0] * (leaf.ndim - 2)),
            ),
            into,
            block,
        )

    return jax.lax.fori_loop(0, starts.shape[0], put, into)


def _put(into: Kept, block: Kept, start: jax.Array) -> Kept:
    return jax.tree.map(
        lambda leaf, rows: jax.lax.dynamic_update_slice_in_dim(leaf, rows, start, 0), into, block
    )


def _rows_of(sampler: Sampler, numbers: tuple[Any, ...]) -> list[Any]:
    """The rows of each array of numbers, asked for together; () has none."""
    assert isinstance(sampler.target, Posterior)
    asked = [leaf for leaf in numbers if not isinstance(leaf, tuple)]
    if not asked:
        return [() for _ in numbers]
    found = sampler.target.examples.rows(jnp.concatenate([jnp.ravel(leaf) for leaf in asked]))
    rows, start = [], 0
    for leaf in numbers:
        if isinstance(leaf, tuple):
            rows.append(())
            continue
        rows.append(jax.tree.map(partial(_cut, start=start, shape=leaf.shape), found))
        start += leaf.size
    return rows


def _cut(rows: jax.Array, start: int, shape: tuple[int, ...]) -> jax.Array:
    return rows[start : start + math.prod(shape)].reshape(*shape, *rows.shape[1:])


def _where(is_made: jax.Array, new: State, old: State) -> State:
    """The new states of the chains that made a transition."""

    def choose(new: jax.Array, old: jax.Array) -> jax.Array:
        shape = (*is_made.shape, *[1] * (new.ndim - is_made.ndim))
        return jnp.where(is_made.reshape(shape), new, old)

    return jax.tree.map(choose, new, old)
