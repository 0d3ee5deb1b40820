"""What a compiled program depends on, in words, so that another process finds it untraced.

Only what is known for certain has words: numbers, texts, and the functions and classes of this
library and of JAX by their names, together with a digest of the library's own source. A function
that a user wrote has none, because nothing tells what it reads; its programs are traced each time.
"""

import dataclasses
import enum
import functools
import hashlib
import importlib.metadata
import os
import platform
import sys
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

OURS = "amagold"
# packages whose functions and classes are told by their names and releases
KNOWN = (OURS, "jax", "jaxlib", "numpy", "builtins", "math")
RELEASES = ("jax", "jaxlib", "numpy", "scipy", "optax")
# what these say has no effect on a program, or is where programs are kept
UNRELATED = ("cache", "log", "traceback", "dump", "pprint")
PLAIN = (type(None), bool, int, float, complex, str, bytes, type(Ellipsis), np.generic, np.dtype)


class UnknownDependencyError(Exception):
    """Something that a program depends on has no words."""


def words_of_program(
    function: Callable[..., Any], fixed: dict[str, Any], varying: Sequence[Any], level: int
) -> str:
    """Of the function's program with these static values, for arguments like these, compiled at
    this level.

    Raises UnknownDependencyError where the program may depend on something else.
    """
    leaves, form = jax.tree.flatten(list(varying))
    parts = (
        _words_of_process(),
        _settings(),
        _words(function),
        _words(level),
        _words(fixed),
        _words_of_form(form),
        *map(_words_of_leaf, leaves),
    )
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


@functools.cache
def _words_of_process() -> str:
    """Of this library and its packages, and of the machine."""
    releases = [f"{name} {importlib.metadata.version(name)}" for name in RELEASES]
    devices = [f"{device.id} {device.platform} {device.device_kind}" for device in jax.devices()]
    flags = [os.environ.get(name, "") for name in ("XLA_FLAGS", "LIBTPU_INIT_ARGS")]
    return repr((_source(), releases, sys.version, platform.machine(), devices, flags))


def _source() -> str:
    """A digest of all of the library's own files: a program is a function of them."""
    root = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for path in sorted(root.rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0")
        digest.update(path.read_bytes() + b"\0")
    return digest.hexdigest()


def settings_of_jax() -> str:
    """All that JAX is set to in this thread that may change a program."""
    values = jax.config.values.items()
    return repr([(name, value) for name, value in values if not any(w in name for w in UNRELATED)])


def _settings() -> str:
    if not jax.sharding.get_abstract_mesh().empty:
        raise UnknownDependencyError("a mesh that was set from outside")
    return settings_of_jax()


def _words(value: Any) -> str:
    """Of a static value."""
    if isinstance(value, PLAIN):
        return f"{type(value).__name__} {value!r}"
    if isinstance(value, enum.Enum):
        return f"{_name_of(type(value))} {value.name}"
    if isinstance(value, functools.partial):
        return f"partial {_words(value.func)} {_words(value.args)} {_words(value.keywords)}"
    if isinstance(value, (type, types.FunctionType, types.BuiltinFunctionType, np.ufunc)):
        return _name_of(value)
    if isinstance(value, Mesh):
        numbers = [device.id for device in value.devices.flat]
        return f"mesh {value.axis_names} {value.axis_types} {value.devices.shape} {numbers}"
    if isinstance(value, PartitionSpec):
        return f"spec {tuple(value)!r}"
    if isinstance(value, jax.tree_util.PyTreeDef):
        return _words_of_form(value)
    return _words_of_parts(value)


def _words_of_parts(value: Any) -> str:
    """Of a container, or of a record of ours."""
    kind = _name_of(type(value))
    if isinstance(value, dict):
        return f"{kind} {[(_words(key), _words(each)) for key, each in value.items()]}"
    if isinstance(value, (set, frozenset)):
        return f"{kind} {sorted(map(_words, value))}"
    if isinstance(value, (tuple, list)):
        return f"{kind} {list(map(_words, value))}"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return f"{kind} {[(field.name, _words(getattr(value, field.name))) for field in fields]}"
    # what `jax.jit` and `custom_jvp` make of a function of ours
    wrapped = getattr(value, "__wrapped__", None)
    if isinstance(wrapped, types.FunctionType):
        return f"{kind} {_name_of(wrapped)}"
    raise UnknownDependencyError(kind)


def _name_of(thing: Any) -> str:
    """A function or a class by its name, if it is found under it, and holds nothing else."""
    module = getattr(thing, "__module__", None) or "numpy"  # ufuncs have none
    name = getattr(thing, "__qualname__", None) or getattr(thing, "__name__", "")
    holds_more = isinstance(thing, types.FunctionType) and thing.__closure__ is not None
    if module.split(".")[0] not in KNOWN or "<" in name or holds_more:
        raise UnknownDependencyError(f"{module}.{name}")
    return f"{module}.{name}"


def _words_of_form(form: Any) -> str:
    """Of a tree, with the static values of its records."""
    node = form.node_data()
    if node is None:
        return "*" if form.num_leaves else "None"
    kind, beside = node
    is_plain = kind in (tuple, list, dict)
    children = ", ".join(map(_words_of_form, form.children()))
    return f"{kind.__name__ if is_plain else _name_of(kind)}[{_words(beside)}]({children})"


def _words_of_leaf(leaf: Any) -> str:
    if isinstance(leaf, jax.Array):
        is_weak = getattr(leaf, "weak_type", False)
        is_placed = getattr(leaf, "committed", True)
        place = _words_of_sharding(leaf.sharding)
        return f"{leaf.shape} {leaf.dtype} {is_weak} {is_placed} {place}"
    if isinstance(leaf, (np.ndarray, np.generic)):
        return f"host {leaf.shape} {leaf.dtype}"
    if isinstance(leaf, (bool, int, float, complex)):
        return type(leaf).__name__
    raise UnknownDependencyError(type(leaf).__name__)


def _words_of_sharding(sharding: Any) -> str:
    kind = sharding.memory_kind
    if isinstance(sharding, SingleDeviceSharding):
        return f"{kind} {[device.id for device in sharding.device_set]}"
    if isinstance(sharding, NamedSharding) and isinstance(sharding.mesh, Mesh):
        return f"{kind} {_words(sharding.mesh)} {_words(sharding.spec)}"
    raise UnknownDependencyError(type(sharding).__name__)
