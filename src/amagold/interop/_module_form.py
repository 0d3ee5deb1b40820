"""A module of a neural network, taken apart: arrays that are sampled, arrays that stay as they are,
and the rest, from which it is put together again.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees

Chosen = Callable[[str, Any], bool] | Sequence[str] | str | None


class Leaf(NamedTuple):
    """One array of a module, where it is, and whether an optimiser would change it."""

    path: str  # "layers.0.weight"
    value: Any
    is_parameter: bool


@dataclass(frozen=True)
class ModuleForm:
    """All of a module that JAX does not trace. Sampled arrays are a dict by their paths."""

    join: Callable[[Any, list[Any]], Any]  # the library's way to a module, from `rest` and arrays
    rest: Any
    paths: tuple[str | None, ...]  # of each array; None stays as it is
    call: Callable[[Any, Any], Any]  # (module, one input) -> its output

    def outputs(self, position: dict[str, Any], frozen: tuple[Any, ...], inputs: Any) -> Any:
        """What the module says about one input, with these arrays in their places."""
        others = iter(frozen)
        arrays = [next(others) if path is None else position[path] for path in self.paths]
        return self.call(self.join(self.rest, arrays), inputs)


class Parts(NamedTuple):
    """A module as `from_module` needs it."""

    form: ModuleForm
    position: dict[str, jax.Array]
    frozen: tuple[Any, ...]


def take_apart(module: Any, sampled: Chosen = None, call: Any = None) -> Parts:
    """The parts of a Flax NNX or Equinox module, set to predict (no dropout, fixed averages)."""
    library = _library_of(module)
    rest, leaves = library.arrays_of(module)
    parameters = {leaf.path: leaf.value for leaf in leaves if leaf.is_parameter}
    chosen = _chosen(sampled, parameters)
    paths = tuple(leaf.path if leaf.path in chosen else None for leaf in leaves)
    return Parts(
        ModuleForm(library.join, rest, paths, call or library.call),
        {path: parameters[path] for path in chosen},
        tuple(leaf.value for leaf in leaves if leaf.path not in chosen),
    )


def _origins(module: Any) -> set[str]:
    """The libraries that a module's class and its parents come from."""
    return {parent.__module__.split(".")[0] for parent in type(module).__mro__}


def is_module(candidate: Any) -> bool:
    return bool(_origins(candidate) & {"flax", "equinox"})


def _library_of(module: Any) -> Any:
    """The file that knows the module's library, which is loaded already where there is a module."""
    origins = _origins(module)
    if "flax" in origins and not hasattr(module, "apply"):
        from amagold.interop import flax

        return flax
    if "equinox" in origins:
        from amagold.interop import equinox

        return equinox
    if "flax" in origins:
        raise ValueError(
            f"module must be a Flax NNX or an Equinox module, got {type(module).__name__} of Flax "
            "Linen, which does not hold its parameters; write amagold.Posterior with module.apply, "
            "or turn it into NNX with flax.nnx.bridge.ToNNX"
        )
    raise ValueError(
        f"module must be a Flax NNX or an Equinox module, got {type(module).__name__}; for another "
        "library write amagold.Posterior with a log likelihood of one example "
        "(pip install 'amagold[flax]' or 'amagold[equinox]' for these two)"
    )


def _chosen(sampled: Chosen, parameters: dict[str, Any]) -> tuple[str, ...]:
    """Paths of the parameters that are sampled, in the module's order."""
    if sampled is None:
        chosen = tuple(parameters)
    elif callable(sampled):
        chosen = tuple(path for path, leaf in parameters.items() if sampled(path, leaf))
    else:
        words = (sampled,) if isinstance(sampled, str) else tuple(sampled)
        unknown = [word for word in words if not any(_within(path, word) for path in parameters)]
        if unknown:
            raise ValueError(
                f"sampled names {unknown[0]!r}, which no parameter is within; the module has "
                f"{_listed(parameters)}"
            )
        chosen = tuple(path for path in parameters if any(_within(path, word) for word in words))
    if not chosen:
        raise ValueError(
            f"sampled leaves no parameter to sample; the module has {_listed(parameters)}"
        )
    return chosen


def _within(path: str, word: str) -> bool:
    return path == word or path.startswith(f"{word}.")


def _listed(parameters: dict[str, Any]) -> str:
    return ", ".join(parameters) or "none: no array of numbers that an optimiser would change"


def path_of(keys: tuple[Any, ...]) -> str:
    """Keys of JAX's paths as one word."""
    words = [getattr(key, "name", getattr(key, "key", getattr(key, "idx", key))) for key in keys]
    return ".".join(map(str, words))


def is_array(leaf: Any) -> bool:
    return isinstance(leaf, (jax.Array, np.ndarray))


def is_key(array: Any) -> bool:
    """Whether the array holds random keys, of dropout and the like."""
    return jnp.issubdtype(array.dtype, jax.dtypes.prng_key)


def without_keys(array: Any) -> Any:
    """Random keys are frozen as plain numbers, which every part of a run can look at."""
    return jax.random.key_data(array) if is_key(array) else array


def with_keys(arrays: list[Any], are_keys: tuple[bool, ...]) -> list[Any]:
    """The way back."""
    return [
        jax.random.wrap_key_data(array) if was_key else array
        for array, was_key in zip(arrays, are_keys, strict=True)
    ]


@trees.record(static=("form",))
class ModuleApply:
    """(position, one input) -> the module's output."""

    form: ModuleForm
    frozen: tuple[Any, ...]

    def __call__(self, position: dict[str, Any], inputs: Any) -> Any:
        return self.form.outputs(position, self.frozen, inputs)
