"""What a model is called with, in three parts: rows of the data, other arrays, and the rest."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core.arrays import as_numbers

ROW, HELD = "row", "held"


@dataclass(frozen=True)
class Fixed:
    """A number, a text, a function: anything that JAX does not trace."""

    value: Any

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Fixed) or type(self.value) is not type(other.value):
            return False
        return self.value is other.value or (_has_hash(self.value) and self.value == other.value)

    def __hash__(self) -> int:
        return hash(self.value) if _has_hash(self.value) else id(self.value)


@dataclass(frozen=True)
class CallForm:
    """Where rows, other arrays and the rest stand among a model's arguments."""

    tree: Any
    parts: tuple[tuple[str, str | Fixed], ...]  # the name of each leaf, and its part

    def call(self, rows: dict[str, Any], held: dict[str, Any]) -> tuple[tuple, dict[str, Any]]:
        """The arguments and the keyword arguments again."""
        found = {ROW: rows, HELD: held}
        leaves = [
            part.value if isinstance(part, Fixed) else found[part][name]
            for name, part in self.parts
        ]
        return jax.tree.unflatten(self.tree, leaves)


def split_call(
    arguments: tuple[Any, ...], keywords: dict[str, Any], num_rows: int | None
) -> tuple[CallForm, dict[str, Any], dict[str, Any]]:
    """The form of a call, its arrays of `num_rows` rows, and its other arrays; None has no rows."""
    leaves, tree = jax.tree_util.tree_flatten_with_path(
        (arguments, keywords), is_leaf=lambda leaf: leaf is None
    )
    parts: list[tuple[str, str | Fixed]] = []
    rows, held = {}, {}
    for path, leaf in leaves:
        name = jax.tree_util.keystr(path[1:], simple=True, separator=".")
        if not isinstance(leaf, (np.ndarray, jax.Array)) and not hasattr(leaf, "__array__"):
            parts.append((name, Fixed(leaf)))
            continue
        if isinstance(leaf, np.generic):
            parts.append((name, Fixed(leaf.item())))
            continue
        array = as_numbers(f"argument {name}", leaf)
        is_rows = num_rows is not None and array.ndim and array.shape[0] == num_rows
        parts.append((name, ROW if is_rows else HELD))
        (rows if is_rows else held)[name] = array if is_rows else jnp.asarray(array)
    return CallForm(tree, tuple(parts)), rows, held


def _has_hash(value: Any) -> bool:
    try:
        hash(value)
    except TypeError:
        return False
    return True
