"""Modules of Equinox: which arrays they hold, and the way back to a module."""

from typing import Any, NamedTuple

import jax

from amagold.interop._module_form import (
    Leaf,
    is_array,
    is_key,
    path_of,
    with_keys,
    without_keys,
)


class EquinoxRest(NamedTuple):
    """A module without its arrays."""

    others: tuple[Any, ...]  # leaves that are no arrays, such as activation functions; None is one
    form: Any
    are_keys: tuple[bool, ...]


def arrays_of(module: Any) -> tuple[EquinoxRest, list[Leaf]]:
    """What is left of the module without its arrays, and these. Floating-point arrays are
    parameters.
    """
    import equinox as eqx  # late, because it loads jaxtyping, which changes how files are loaded

    found, form = jax.tree_util.tree_flatten_with_path(eqx.nn.inference_mode(module))
    leaves = [
        Leaf(path_of(keys), without_keys(value), eqx.is_inexact_array_like(value))
        for keys, value in found
        if is_array(value)
    ]
    others = tuple(None if is_array(value) else value for _, value in found)
    are_keys = tuple(is_key(value) for _, value in found if is_array(value))
    return EquinoxRest(others, form, are_keys), leaves


def join(rest: EquinoxRest, arrays: list[Any]) -> Any:
    """The module with these arrays."""
    restored = iter(with_keys(arrays, rest.are_keys))
    # None is no leaf of JAX's trees, so it marks the arrays' places
    leaves = [next(restored) if other is None else other for other in rest.others]
    return jax.tree.unflatten(rest.form, leaves)


def call(module: Any, inputs: Any) -> Any:
    """The output for one input, as Equinox's modules are called."""
    return module(inputs)
