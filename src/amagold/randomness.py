"""Randomness for the T steps of a trajectory: drawn in bulk, or late from the same keys, with the same bits."""

from typing import Any, NamedTuple, Protocol

import jax

from amagold import trees

BLOCK_SIZE = 64  # below this many numbers a step, one draw for all steps is several times faster than one key per step


class Draw(Protocol):
    """`draw(key, position, shape)`: random numbers for one step, with `shape` as leading axes; reads only the position's form."""

    def __call__(self, key: jax.Array, position: trees.PyTree, shape: tuple[int, ...] = ()) -> Any: ...


class Late(NamedTuple):
    """A key in place of the noise that it makes."""

    key: jax.Array


def draw_steps(draw: Draw, key: jax.Array, position: trees.PyTree, num_steps: int, late: bool) -> Any:
    """What `num_steps` steps need, on a leading axis; with `late`, large noise stays a key per step until it is used."""
    form = jax.eval_shape(lambda key: draw(key, position, ()), key)
    if trees.size(form) < BLOCK_SIZE:
        return draw(key, position, (num_steps,))
    keys = jax.random.split(key, num_steps)
    if late:
        return Late(keys)
    return jax.vmap(lambda step_key: draw(step_key, position, ()))(keys)


def resolve(draw: Draw, noise: Any, position: trees.PyTree) -> Any:
    """One step's noise, made now if it was left for late."""
    return draw(noise.key, position, ()) if isinstance(noise, Late) else noise
