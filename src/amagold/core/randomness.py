"""Randomness for the T steps of a trajectory: drawn in bulk, or late from the same keys, with the
same bits.
"""

import math
from typing import NamedTuple, Protocol, runtime_checkable

import jax
import jax.numpy as jnp
from jax import Array

from amagold.core import trees
from amagold.core.array_types import Float, Float32, Int, Int32, PyTree, UInt32
from amagold.core.shapes import Form, RandomKey

# a step that needs fewer normal numbers shares one draw with all others, which is several times
# faster
BLOCK_SIZE = 64
# the compiler vectorises along rows of this many numbers, and an odd length costs several times as
# much
ROW = 16


@runtime_checkable
class DrawFunction(Protocol):
    """`draw(key, position, shape)`: random numbers for one step, with `shape` as leading axes;
    reads only the position's form.
    """

    def __call__(
        self, key: RandomKey, position: Form, shape: tuple[int, ...] = ()
    ) -> trees.PyTree: ...


class Late(NamedTuple):
    """A key in place of the noise that it makes."""

    key: RandomKey  # of every step, until a step has its own


def normal_like(
    key: RandomKey, position: Form, shape: tuple[int, ...] = ()
) -> PyTree[Float[Array, "..."]]:
    """Standard normal numbers in the form of the position, with `shape` as leading axes. Only its
    shapes and types are read.
    """
    return _cut(_normals(key, math.prod(shape) * trees.size(position)), position, shape)


def draw_all(
    draws: dict[str, tuple[DrawFunction | None, int | None]],
    key: RandomKey,
    position: Form,
    late: bool,
) -> dict[str, trees.PyTree]:
    """What each named draw gives, with a leading axis of its number of steps (None: no such axis).

    Draws that are `normal_like` and small are cut from one block of normal numbers. The others have
    a key each; if they are large and `late` is asked for, a key per step stays in place of the
    noise until the step needs it.
    """
    block_key, *keys = jax.random.split(key, len(draws) + 1)
    steps = {name: () if count is None else (count,) for name, (_, count) in draws.items()}
    small = trees.size(position) < BLOCK_SIZE
    in_block = [name for name, (draw, _) in draws.items() if draw is normal_like and small]
    counts = [math.prod(steps[name]) * trees.size(position) for name in in_block]
    block = _normals(block_key, sum(counts)) if in_block else None
    drawn: dict[str, trees.PyTree] = {}
    for (name, (draw, count)), own_key in zip(draws.items(), keys, strict=True):
        if draw is None:
            drawn[name] = ()
        elif name in in_block and block is not None:
            place = in_block.index(name)
            start = sum(counts[:place])
            drawn[name] = _cut(block[start : start + counts[place]], position, steps[name])
        elif (
            count is None
            or trees.size(jax.eval_shape(lambda key, draw=draw: draw(key, position, ()), own_key))
            < BLOCK_SIZE
        ):
            drawn[name] = draw(own_key, position, steps[name])
        else:
            step_keys = jax.random.split(own_key, count)
            # one step after the other: all at once would go through memory, not the cache, at every
            # round of the generator
            drawn[name] = (
                Late(step_keys)
                if late
                else jax.lax.map(lambda key, draw=draw: draw(key, position, ()), step_keys)
            )
    return drawn


def resolve(draw: DrawFunction | None, noise: trees.PyTree, position: Form) -> trees.PyTree:
    """One step's noise, made now if it was left for late."""
    return draw(noise.key, position, ()) if draw is not None and isinstance(noise, Late) else noise


def row_numbers(key: RandomKey, shape: tuple[int, ...], num_examples: int) -> Int[Array, "..."]:
    """Independent uniform row numbers: the high word of (32 random bits) x (number of examples),
    uniform to num_examples / 2^32.

    One word each and no division, which makes it several times faster than `jax.random.randint`.
    """
    return scaled(jax.random.bits(key, shape, jnp.uint32), num_examples)


def unit(bits: UInt32[Array, "*shape"]) -> Float32[Array, "*shape"]:
    """Uniform numbers in [0, 1) from 32 random bits each."""
    return (bits >> 8).astype(jnp.float32) * jnp.float32(2.0**-24)


def scaled(bits: UInt32[Array, "*shape"], num_examples: int) -> Int32[Array, "*shape"]:
    """Uniform whole numbers below `num_examples` from 32 random bits each."""
    low, high = bits & 0xFFFF, bits >> 16
    count_low, count_high = jnp.uint32(num_examples & 0xFFFF), jnp.uint32(num_examples >> 16)
    # schoolbook product of two 32-bit numbers in 16-bit digits, keeping the upper half
    middle = high * count_low + ((low * count_low) >> 16)
    carry = (low * count_high + (middle & 0xFFFF)) >> 16
    return (high * count_high + (middle >> 16) + carry).astype(jnp.int32)


def _normals(key: RandomKey, count: int) -> Float[Array, " {count}"]:
    return jax.random.normal(key, (-(-count // ROW) * ROW,))[:count]


def _cut(
    numbers: Float[Array, " numbers"], position: Form, shape: tuple[int, ...]
) -> PyTree[Float[Array, "..."]]:
    return trees.unflatten_like(numbers.reshape(*shape, trees.size(position)), position)
