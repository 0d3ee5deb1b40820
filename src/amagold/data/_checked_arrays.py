"""A user's arrays as examples: finite numbers with one common leading axis, or a sentence."""

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.arrays import as_numbers, check_fits, count_non_finite


def checked_data(data: trees.PyTree) -> trees.PyTree:
    """The data as arrays of JAX; raises unless they are finite numbers with one common leading
    axis, which JAX can hold.
    """
    leaves = jax.tree_util.tree_leaves_with_path(data, is_leaf=_is_list_of_numbers)
    if not leaves:
        raise ValueError(
            "data must hold at least one array; for a target without data use amagold.Density"
        )
    lengths, arrays = {}, []
    for path, leaf in leaves:
        name = f"data{jax.tree_util.keystr(path)}"
        if isinstance(leaf, list) and isinstance(leaf[0], list):
            remedy = (
                "give np.asarray(...) of it where they are rows, or a tuple of arrays where they "
                "are columns"
            )
            raise ValueError(
                f"{name} must be an array, got a list of lists, which may be rows or columns; "
                f"{remedy}"
            )
        array = as_numbers(name, leaf)
        if array.ndim == 0:
            raise ValueError(
                f"{name} must be an array with the examples along its first axis, got {leaf!r}; "
                "wrap it in an array"
            )
        lengths[name] = array.shape[0]
        bad = count_non_finite(array) if trees.is_concrete(array) else 0
        if bad:
            raise ValueError(
                f"{name} must be finite, got {bad} non-finite value(s); drop or impute those "
                "examples first"
            )
        check_fits(name, array)
        arrays.append(jnp.asarray(array))
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name}: {length}" for name, length in lengths.items())
        raise ValueError(
            f"data must have one common leading axis, got lengths {found}; give every array one "
            "row per example"
        )
    if not next(iter(lengths.values())):
        raise ValueError("data must hold at least one example, got none")
    return jax.tree.unflatten(jax.tree.structure(data, is_leaf=_is_list_of_numbers), arrays)


def _is_list_of_numbers(tree: trees.PyTree) -> bool:
    """Such a list, or a list of such lists, is an array that was not made yet; any other is a
    container.
    """

    def is_number(entry: object) -> bool:
        return isinstance(entry, (int, float, np.number)) or _is_list_of_numbers(entry)

    return isinstance(tree, list) and bool(tree) and all(map(is_number, tree))
