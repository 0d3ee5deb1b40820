"""Records that JAX can look into, and the little arithmetic on pytrees that samplers need."""

import dataclasses
import math
from collections.abc import Callable
from typing import Any, TypeVar, dataclass_transform

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from amagold.core.array_types import Float, PyTree
from amagold.core.arrays import as_numbers
from amagold.core.shapes import Flag, HostVector, Position, Scalar, Vector

Class = TypeVar("Class")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(dataclasses.field,))
def record(
    *, static: tuple[str, ...] = (), functions: tuple[str, ...] = ()
) -> Callable[[type[Class]], type[Class]]:
    """A frozen dataclass whose fields are traced by JAX, except the ones named in `static`.

    A field named in `functions` is traced where its value is a record itself, so that its numbers
    may change without a new program, and static where it is a plain function.

    A class that derives from a record, and is decorated too, inherits both.

    `__post_init__` runs when a person builds the record and not when JAX rebuilds it from its
    leaves, so it may check values.
    """

    def decorate(cls: type[Class]) -> type[Class]:
        cls = dataclasses.dataclass(frozen=True, eq=False)(cls)
        # what a base says of its fields holds for a class that derives from it
        always = tuple(dict.fromkeys((*getattr(cls, "_static", ()), *static)))
        perhaps = tuple(dict.fromkeys((*getattr(cls, "_functions", ()), *functions)))
        cls._static, cls._functions = always, perhaps  # type: ignore[attr-defined]
        names = [field.name for field in dataclasses.fields(cls)]  # type: ignore[arg-type]

        def fixed_in(instance: Any) -> tuple[str, ...]:
            """The static fields, decided once: later the leaves may be anything."""
            if not perhaps:
                return always
            fixed = instance.__dict__.get("_fixed")
            if fixed is None:
                fixed = (
                    *always,
                    *(name for name in perhaps if not is_traceable(getattr(instance, name))),
                )
                object.__setattr__(instance, "_fixed", fixed)
            return fixed

        def flatten(instance: Any) -> tuple[list[Any], tuple[Any, ...]]:
            fixed = fixed_in(instance)
            values = tuple(getattr(instance, name) for name in fixed)
            # the types too: two NamedTuples of different classes are equal when their fields are,
            # and must not share a trace
            return [getattr(instance, name) for name in names if name not in fixed], (
                values,
                tuple(map(type, values)),
                fixed,
            )

        def flatten_with_keys(instance: Any) -> tuple[list[Any], tuple[Any, ...]]:
            children, auxiliary = flatten(instance)
            traced = [name for name in names if name not in auxiliary[2]]
            return [
                (jax.tree_util.GetAttrKey(name), child)
                for name, child in zip(traced, children, strict=True)
            ], auxiliary

        def unflatten(auxiliary: tuple[Any, ...], children: Any) -> Any:
            values, _, fixed = auxiliary
            instance = object.__new__(cls)
            traced = [name for name in names if name not in fixed]
            for name, value in zip((*traced, *fixed), (*children, *values), strict=True):
                object.__setattr__(instance, name, value)
            if perhaps:
                object.__setattr__(instance, "_fixed", fixed)
            return instance

        jax.tree_util.register_pytree_with_keys(cls, flatten_with_keys, unflatten, flatten)
        return cls

    return decorate


def is_traceable(value: Any) -> bool:
    """Whether the value is a tree that JAX knows, with nothing but arrays for leaves: not a plain
    function, nor one that holds one.
    """
    if jax.tree_util.all_leaves([value]):
        return False
    return all(isinstance(leaf, (jax.Array, np.ndarray)) for leaf in jax.tree.leaves(value))


def hashable(function: Any) -> Any:
    """The function itself (or None), or a plain one around it where it cannot be hashed, so that it
    can be a static field.
    """
    try:
        hash(function)
    except TypeError:
        return lambda *arguments: function(*arguments)
    return function


def is_concrete(tree: PyTree) -> bool:
    """True when every leaf holds values that can be looked at now, outside a trace."""
    return not any(isinstance(leaf, Tracer) for leaf in jax.tree.leaves(tree))


def as_position(position: PyTree, name: str = "position") -> Position:
    """The position as floating-point arrays; `name` is what a sentence about a bad one calls it."""

    def as_float(path: Any, leaf: Any) -> jax.Array:
        if not isinstance(leaf, (float, jax.Array)):
            leaf = as_numbers(f"{name}{jax.tree_util.keystr(path)}", leaf)
        kind = jnp.result_type(leaf)
        # a given type, because a Python number's own would make the first step compile once more
        # than the rest
        kind = kind if jnp.issubdtype(kind, jnp.floating) else jnp.float32
        # NumPy's numbers are converted by NumPy, which compiles nothing
        return jnp.asarray(leaf if isinstance(leaf, jax.Array) else np.asarray(leaf, kind), kind)

    return jax.tree_util.tree_map_with_path(as_float, position)


def size(tree: PyTree) -> int:
    """How many numbers the tree holds."""
    return sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(tree))


def num_bytes(tree: PyTree) -> int:
    """How many bytes the tree's arrays take."""
    return sum(math.prod(leaf.shape) * leaf.dtype.itemsize for leaf in jax.tree.leaves(tree))


def unflatten_like(
    flat: Float[Array | np.ndarray, "*leading parameters"], like: PyTree
) -> PyTree[Float[Array | np.ndarray, "..."]]:
    """Cut the last axis of `flat` into leaves shaped like those of `like`, keeping the leading
    axes.
    """
    leaves, structure = jax.tree.flatten(like)
    pieces, start = [], 0
    for leaf in leaves:
        stop = start + math.prod(leaf.shape)
        pieces.append(
            flat[..., start:stop].reshape((*flat.shape[:-1], *leaf.shape)).astype(leaf.dtype)
        )
        start = stop
    return jax.tree.unflatten(structure, pieces)


def flatten(tree: Position) -> Vector:
    """All numbers of the tree in one vector."""
    return jnp.concatenate([jnp.ravel(leaf) for leaf in jax.tree.leaves(tree)])


def known_numbers(tree: Position) -> HostVector:
    """All numbers of a tree of known values in one float64 vector; nothing is compiled for it."""
    return np.concatenate(
        [np.ravel(np.asarray(leaf, np.float64)) for leaf in jax.tree.leaves(tree)]
    )


def add(left: Position, right: Position) -> Position:
    return jax.tree.map(jnp.add, left, right)


def negate(tree: Position) -> Position:
    return jax.tree.map(jnp.negative, tree)


def dot(left: Position, right: Position) -> Scalar:
    """The inner product of two trees of the same form."""
    return jax.tree.reduce(jnp.add, jax.tree.map(lambda a, b: jnp.sum(a * b), left, right))


def where(condition: Flag, if_true: PyTree, if_false: PyTree) -> PyTree:
    """One selection for a whole tree, so that no field can be left behind."""
    return jax.tree.map(lambda a, b: jnp.where(condition, a, b), if_true, if_false)


def is_finite(tree: PyTree) -> bool:
    """Whether every number of a tree of known values is finite; nothing is compiled for it."""
    return all(bool(np.all(np.isfinite(np.asarray(leaf)))) for leaf in jax.tree.leaves(tree))


def all_finite(tree: PyTree) -> Flag:
    """True when every number of the tree is finite."""
    return jnp.all(jnp.stack([jnp.all(jnp.isfinite(leaf)) for leaf in jax.tree.leaves(tree)]))
