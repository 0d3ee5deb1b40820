"""Modules of Flax NNX: which arrays they hold, and the way back to a module."""

from typing import Any, NamedTuple

import jax
from flax import nnx

from amagold.interop._module_form import Leaf, is_key, path_of, with_keys, without_keys


class FlaxRest(NamedTuple):
    """A module without its arrays."""

    graph: Any
    form: Any  # of the tree of arrays
    are_keys: tuple[bool, ...]  # which arrays are keys of dropout and the like


def arrays_of(module: Any) -> tuple[FlaxRest, list[Leaf]]:
    """What is left of the module without its arrays, and these. Its `Param`s are parameters; batch
    statistics and random keys are not.
    """
    graph, state = nnx.split(module)
    # a copy predicts: the user's own module may go on with its training
    copy = nnx.merge(graph, state)
    copy.eval()
    graph, state = nnx.split(copy)
    variables = nnx.to_flat_state(state)
    is_parameter = {
        ".".join(map(str, path)): isinstance(variable, nnx.Param) for path, variable in variables
    }
    found, form = jax.tree_util.tree_flatten_with_path(state)
    leaves = []
    for keys, value in found:
        # the last key leads from the variable to its array
        path = path_of(keys[:-1])
        leaves.append(Leaf(path, without_keys(value), is_parameter.get(path, False)))
    are_keys = tuple(is_key(value) for _, value in found)
    return FlaxRest(graph, form, are_keys), leaves


def join(rest: FlaxRest, arrays: list[Any]) -> Any:
    """The module with these arrays."""
    leaves = with_keys(arrays, rest.are_keys)
    return nnx.merge(rest.graph, jax.tree.unflatten(rest.form, leaves))


def call(module: Any, inputs: Any) -> Any:
    """The output for one input: Flax's layers take several, along a first axis."""
    outputs = module(jax.tree.map(lambda leaf: leaf[None], inputs))
    return jax.tree.map(lambda leaf: leaf[0], outputs)
