"""Records that JAX can look into, and the little arithmetic on pytrees that samplers need."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

PyTree = Any
Class = TypeVar("Class")


@dataclass_transform(frozen_default=True, eq_default=False)
def record(*, static: tuple[str, ...] = ()) -> Callable[[type[Class]], type[Class]]:
    """A frozen dataclass whose fields are traced by JAX, except the ones named in `static`.

    `__post_init__` runs when a person builds the record and not when JAX rebuilds it from its leaves, so it may check values.
    """

    def decorate(cls: type[Class]) -> type[Class]:
        cls = dataclasses.dataclass(frozen=True, eq=False)(cls)
        names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]
        traced = [name for name in names if name not in static]

        def flatten(instance: Any) -> tuple[list[Any], tuple[Any, ...]]:
            values = tuple(getattr(instance, name) for name in static)
            # the types too: two NamedTuples of different classes are equal when their fields are, and must not share a trace
            return [getattr(instance, name) for name in traced], (values, tuple(map(type, values)))

        def flatten_with_keys(instance: Any) -> tuple[list[Any], tuple[Any, ...]]:
            leaves, values = flatten(instance)
            return [(jax.tree_util.GetAttrKey(name), leaf) for name, leaf in zip(traced, leaves, strict=True)], values

        def unflatten(values: tuple[Any, ...], leaves: Any) -> Any:
            instance = object.__new__(cls)
            for name, value in zip((*traced, *static), (*leaves, *values[0]), strict=True):
                object.__setattr__(instance, name, value)
            return instance

        jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
        return cls

    return decorate


def hashable(function: Any) -> Any:
    """The function itself (or None), or a plain one around it where it cannot be hashed, so that it can be a static field."""
    try:
        hash(function)
    except TypeError:
        return lambda *arguments: function(*arguments)
    return function


def is_concrete(tree: PyTree) -> bool:
    """True when every leaf holds values that can be looked at now, outside a trace."""
    return not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


def as_position(position: PyTree) -> PyTree:
    """The position as floating-point arrays."""

    def as_float(leaf: Any) -> jax.Array:
        kind = jnp.result_type(leaf)
        # a given type, because a Python number's own would make the first step compile once more than the rest
        kind = kind if jnp.issubdtype(kind, jnp.floating) else jnp.float32
        # NumPy's numbers are converted by NumPy, which compiles nothing
        return jnp.asarray(leaf if isinstance(leaf, jax.Array) else np.asarray(leaf, kind), kind)

    return jax.tree.map(as_float, position)


def size(tree: PyTree) -> int:
    """How many numbers the tree holds."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))


def num_bytes(tree: PyTree) -> int:
    """How many bytes the tree's arrays take."""
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def unflatten_like(flat: jax.Array | np.ndarray, like: PyTree) -> PyTree:
    """Cut the last axis of `flat` into leaves shaped like those of `like`, keeping the leading axes."""
    leaves, structure = jax.tree.flatten(like)
    pieces, start = [], 0
    for leaf in leaves:
        stop = start + math.prod(leaf.shape)
        pieces.append(flat[..., start:stop].reshape((*flat.shape[:-1], *leaf.shape)).astype(leaf.dtype))
        start = stop
    return jax.tree.unflatten(structure, pieces)


def flatten(tree: PyTree) -> jax.Array:
    """All numbers of the tree in one vector."""
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def add(left: PyTree, right: PyTree) -> PyTree:
    return jax.tree.map(jnp.add, left, right)


def negate(tree: PyTree) -> PyTree:
    return jax.tree.map(jnp.negative, tree)


def dot(left: PyTree, right: PyTree) -> jax.Array:
    """The inner product of two trees of the same form."""
    return jax.tree.reduce(jnp.add, jax.tree.map(lambda a, b: jnp.sum(a * b), left, right))


def where(condition: jax.Array, if_true: PyTree, if_false: PyTree) -> PyTree:
    """One selection for a whole tree, so that no field can be left behind."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), if_true, if_false)


def is_finite(tree: PyTree) -> bool:
    """Whether every number of a tree of known values is finite; nothing is compiled for it."""
    return all(bool(np.all(np.isfinite(np.asarray(leaf)))) for leaf in jax.tree.leaves(tree))


def all_finite(tree: PyTree) -> jax.Array:
    """True when every number of the tree is finite."""
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))
