"""Arrays of several types as one of 32-bit words, so that an exchange of all of them is one."""

from collections.abc import Callable
from typing import Any, TypeVar

import jax
import jax.numpy as jnp

Tree = TypeVar("Tree")


def packed(tree: Tree, leading: int) -> tuple[jax.Array, Callable[[jax.Array, int], Tree]]:
    """All arrays as one of 32-bit words, after their first axes, and the way back from one with so
    many first axes. One array is one exchange, and words arrive as they were sent.
    """
    leaves, structure = jax.tree.flatten(tree)
    words = [_as_words(leaf).reshape(*leaf.shape[:leading], -1) for leaf in leaves]

    def unpack(packed: jax.Array, leading_now: int) -> Tree:
        found, start = [], 0
        for leaf, part in zip(leaves, words, strict=True):
            width = part.shape[-1]
            shape = (*packed.shape[:leading_now], *leaf.shape[leading:])
            found.append(_from_words(packed[..., start : start + width], shape, leaf.dtype))
            start += width
        return jax.tree.unflatten(structure, found)

    return jnp.concatenate(words, axis=-1), unpack


def _as_words(leaf: jax.Array) -> jax.Array:
    if leaf.dtype.itemsize < 4:
        is_half = jnp.issubdtype(leaf.dtype, jnp.floating)
        leaf = jax.lax.bitcast_convert_type(leaf, jnp.int16) if is_half else leaf
        return leaf.astype(jnp.int32)
    return jax.lax.bitcast_convert_type(leaf, jnp.int32)


def _from_words(words: jax.Array, shape: tuple[int, ...], kind: Any) -> jax.Array:
    if kind.itemsize < 4:
        words = words.reshape(shape)
        if jnp.issubdtype(kind, jnp.floating):
            return jax.lax.bitcast_convert_type(words.astype(jnp.int16), kind)
        return words.astype(kind)
    pairs = (2,) if kind.itemsize == 8 else ()
    return jax.lax.bitcast_convert_type(words.reshape(*shape, *pairs), kind)
