"""The form of a position as JSON, so that a run can be opened again without a pickle."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees


def describe_structure(tree: trees.PyTree) -> Any:
    """Nested dicts, lists and tuples with shapes at the leaves; None when the tree holds classes
    that JSON cannot name.
    """
    try:
        return _describe(tree)
    except TypeError:
        return None


def rebuild_structure(description: Any) -> trees.PyTree:
    """A tree of shapes and types in the described form; raises `ValueError` when there is none."""
    kind, content = description
    if kind == "leaf":
        return _leaf(*content)
    if kind == "dict":
        return {_word(name): rebuild_structure(part) for name, part in content}
    if kind not in ("tuple", "list"):
        raise ValueError(f"a position holds dicts, lists and tuples, not {kind!r}")
    parts = [rebuild_structure(part) for part in content]
    return tuple(parts) if kind == "tuple" else parts


def _leaf(shape: Any, dtype: Any) -> jax.ShapeDtypeStruct:
    found = np.dtype(_word(dtype))
    is_shape = all(type(axis) is int and axis >= 0 for axis in shape)
    if not is_shape or not jnp.issubdtype(found, jnp.floating):
        raise ValueError(f"a position holds arrays of real numbers, not {shape!r} of {dtype!r}")
    return jax.ShapeDtypeStruct(tuple(shape), found)


def _word(name: Any) -> str:
    if not isinstance(name, str):
        raise ValueError(f"a name is a text, not {name!r}")
    return name


def _describe(tree: trees.PyTree) -> list:
    if type(tree) is dict:
        if not all(isinstance(name, str) for name in tree):
            raise TypeError
        return ["dict", [[name, _describe(part)] for name, part in tree.items()]]
    if type(tree) in (list, tuple):
        return [type(tree).__name__, [_describe(part) for part in tree]]
    if hasattr(tree, "shape") and hasattr(tree, "dtype"):
        return ["leaf", [list(tree.shape), np.dtype(tree.dtype).name]]
    raise TypeError
