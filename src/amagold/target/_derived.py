"""Quantities that follow from the parameters, computed when draws are reported."""

import math
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

from amagold.core import trees
from amagold.core.compiling import ONCE, jit
from amagold.target._axis_names import LONE
from amagold.target._function_checks import traced

AT_ONCE = 1024  # draws; always so many, so that one program does for all


def derived_form(derived: Callable[..., Any], shown: trees.PyTree) -> dict[str, Any]:
    """Shapes and types of the quantities, of one position; raises a sentence where they cannot be
    reported.
    """
    form = traced("derived", derived, position=shown)
    if not isinstance(form, dict) or any(not isinstance(name, str) for name in form):
        raise ValueError(
            f"derived must return a dict of arrays by name, got {type(form).__name__}; as in "
            "{'ratio': position['a'] / position['b']}"
        )
    own = named(shown)
    clash = [name for name in form if name in own]
    if clash:
        raise ValueError(
            f"derived must have names of its own, but {clash[0]!r} is a parameter; choose another"
        )
    return form


def named(shown: trees.PyTree) -> dict[str, Any]:
    """A position beside which other variables have room."""
    return shown if isinstance(shown, dict) else {LONE: shown}


def with_derived(
    derived: Callable[..., Any], shown: trees.PyTree, num_axes: int
) -> dict[str, trees.PyTree]:
    """Reported positions, which have so many leading axes, and the quantities of each."""
    leading = jax.tree.leaves(shown)[0].shape[:num_axes]
    if not math.prod(leading):
        one = jax.tree.map(lambda leaf: np.zeros(leaf.shape[num_axes:], leaf.dtype), shown)
        form = derived_form(derived, one)
        none = jax.tree.map(lambda leaf: np.zeros((*leading, *leaf.shape), leaf.dtype), form)
        return {**named(shown), **none}
    return {**named(shown), **of_each_draw(derived, shown, num_axes)}


def of_each_draw(function: Callable[..., Any], draws: trees.PyTree, num_axes: int) -> trees.PyTree:
    """A function of one position, a record, of every one of some draws, which have so many leading
    axes; there is at least one.
    """
    leading = jax.tree.leaves(draws)[0].shape[:num_axes]
    flat = jax.tree.map(lambda leaf: leaf.reshape(-1, *leaf.shape[num_axes:]), draws)
    found, count = [], math.prod(leading)
    for start in range(0, count, AT_ONCE):
        rows = np.minimum(np.arange(start, start + AT_ONCE), count - 1)
        part = _of_each(function, jax.tree.map(lambda leaf, rows=rows: leaf[rows], flat))
        found.append(jax.tree.map(lambda leaf, stop=count - start: np.asarray(leaf)[:stop], part))
    together = jax.tree.map(lambda *parts: np.concatenate(parts), *found)
    return jax.tree.map(lambda leaf: leaf.reshape((*leading, *leaf.shape[1:])), together)


@jit(ONCE)
def _of_each(function: Callable[..., Any], positions: trees.PyTree) -> trees.PyTree:
    return jax.vmap(function)(positions)
