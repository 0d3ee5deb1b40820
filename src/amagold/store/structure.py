"""The form of a position as JSON, so that a run can be opened again without a pickle."""

from typing import Any

import jax
import numpy as np

from amagold import trees


def describe_structure(tree: trees.PyTree) -> Any:
    """Nested dicts, lists and tuples with shapes at the leaves; None when the tree holds classes that JSON cannot name."""
    try:
        return _describe(tree)
    except TypeError:
        return None


def rebuild_structure(description: Any) -> trees.PyTree:
    """A tree of shapes and types in the described form."""
    kind, content = description
    if kind == "leaf":
        return jax.ShapeDtypeStruct(tuple(content[0]), np.dtype(content[1]))
    if kind == "dict":
        return {name: rebuild_structure(part) for name, part in content}
    parts = [rebuild_structure(part) for part in content]
    return tuple(parts) if kind == "tuple" else parts


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
