"""Variables of a stored run: a name for every array of the position, in ArviZ's layout (chain,
draw, ...).
"""

import re
from typing import Any, NamedTuple

import jax
import numpy as np

from amagold.core import trees

LONE = "theta"  # a position that is one array
RESERVED = {"chain", "draw", ".", "..", "zarr.json", "c"}
SEPARATORS = "/\\"  # of folders: Zarr takes both for one
AXIS = re.compile(r"_dim_\d+$")  # what the axes of the other variables are called
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
DTYPES = ("bool", *INTEGERS, "float32", "float64")


class Variable(NamedTuple):
    """One array of a group: its axes after chain and draw, its type, and whether it has one value
    for the whole run.
    """

    shape: tuple[int, ...]
    dtype: str
    is_constant: bool = False


def name_leaves(tree: trees.PyTree) -> dict[str, Any]:
    """The leaves of a position by name: {"w": ..., "layers.0.bias": ...}; a lone array is called
    theta.
    """
    return dict(zip(_names(tree).values(), jax.tree.leaves(tree), strict=True))


def names_of_leaves(tree: trees.PyTree) -> dict[str, str]:
    """What each leaf is called, by what it is called in the position: not every name can be that of
    a folder.
    """
    return {".".join(map(_word, path)) or LONE: name for path, name in _names(tree).items()}


def _names(tree: trees.PyTree) -> dict[tuple[Any, ...], str]:
    """Of every leaf, by its path."""
    named: dict[tuple[Any, ...], str] = {}
    taken = set(RESERVED)
    for path, _ in jax.tree_util.tree_leaves_with_path(tree):
        name = _plain(".".join(map(_word, path))) or LONE
        while name in taken or AXIS.search(name):
            name += "_"
        taken.add(name)
        named[path] = name
    return named


def is_plain(name: str) -> bool:
    """Whether a name can be a folder and be shown on a terminal."""
    return bool(name) and name == _plain(name) and name not in (".", "..", "zarr.json", "c")


def describe(position: trees.PyTree) -> dict[str, Variable]:
    """The variables of one position (without chain axis)."""
    return {
        name: Variable(tuple(leaf.shape), storable(leaf.dtype))
        for name, leaf in name_leaves(position).items()
    }


def storable(dtype: Any) -> str:
    """A type that Zarr and netCDF know: 16-bit floats of machine learning become float32."""
    name = np.dtype(dtype).name
    return name if name in DTYPES else "float32"


def dimensions(name: str, num_axes: int) -> tuple[str, ...]:
    """The names of all axes of a variable."""
    return ("chain", "draw", *(f"{name}_dim_{axis}" for axis in range(num_axes)))


def _plain(name: str) -> str:
    return "".join(sign if sign.isprintable() and sign not in SEPARATORS else "_" for sign in name)


def _word(entry: Any) -> str:
    for attribute in ("name", "key", "idx"):
        if hasattr(entry, attribute):
            return str(getattr(entry, attribute))
    return str(entry)
