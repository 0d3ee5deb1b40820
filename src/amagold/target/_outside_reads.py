"""What a function reads beside its arguments: closed-over variables, defaults, globals and
attributes, as far as they can be seen.
"""

import dis
import hashlib
import sysconfig
import types
import weakref
from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer

Reading = tuple[tuple[str, str], ...]  # what is read, by its name, and a checksum of its value

MOST_BYTES = 2**20  # of an array that are looked at
DEEPEST = 4  # functions within functions, and containers within containers
MOST_ENTRIES = 1000  # of a container
# whose functions do not change
LIBRARIES = "site-packages", "dist-packages", "<frozen", sysconfig.get_paths()["stdlib"]
CHANGES = {
    "append",
    "add",
    "update",
    "extend",
    "insert",
    "pop",
    "remove",
    "clear",
    "setdefault",
    "STORE_SUBSCR",
    "DELETE_SUBSCR",
}


_arrays: dict[
    int, tuple[weakref.ref[np.ndarray], str]
] = {}  # NumPy's that functions read, and what they held when first seen


def read_by(function: Any) -> Reading:
    """A checksum of each value that the function reads from outside; what it writes itself is left
    out.
    """
    found: dict[str, str] = {}
    for name, value in _values(function, DEEPEST, set()):
        checksum = _checksum(value)
        if checksum is not None:
            found.setdefault(name, checksum)
    return tuple(sorted(found.items()))


def changed_in_place(function: Any) -> str | None:
    """The name of an array that the function reads and somebody wrote into, if there is one.

    JAX knows NumPy's arrays by what they are, not by what they hold: a new trace would use the old
    numbers too.
    """
    changed = None
    for name, value in _values(function, DEEPEST, set()):
        for array in jax.tree.leaves(value) if isinstance(value, (list, tuple, dict)) else [value]:
            if type(array) is not np.ndarray:
                continue
            place, checksum = id(array), _checksum(array)
            known, before = _arrays.get(place, (lambda: None, None))
            if known() is not array:
                _arrays[place] = weakref.ref(array, partial(_forget, place)), str(checksum)
            elif before != checksum:
                changed = name
    return changed


def _forget(place: int, _: Any) -> None:
    _arrays.pop(place, None)


def _values(function: Any, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    """Names and values that a function reads, those of the functions that it calls included."""
    if depth == 0 or id(function) in seen:
        return
    seen.add(id(function))
    if isinstance(function, partial):
        yield from _of_each(
            f"{_name(function.func)}'s arguments", (function.args, function.keywords), depth, seen
        )
        yield from _values(function.func, depth, seen)
    elif isinstance(function, types.MethodType):
        yield from _attributes(function.__self__, function.__func__, depth, seen)
    elif isinstance(function, types.FunctionType):
        yield from _of_function(function, depth, seen)
    elif hasattr(function, "__wrapped__"):  # jax.jit and its like
        yield from _values(function.__wrapped__, depth, seen)
    elif not isinstance(function, type):
        method = vars(type(function)).get("__call__")
        if isinstance(method, types.FunctionType):
            yield from _attributes(function, method, depth, seen)


def _of_function(
    function: types.FunctionType, depth: int, seen: set[int]
) -> Iterator[tuple[str, Any]]:
    code = function.__code__
    if any(part in code.co_filename for part in LIBRARIES):
        return
    uses = _uses(code)
    for place, value in enumerate(
        (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values())
    ):
        yield f"{_name(function)}'s default {place}", value
    for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=False):
        try:
            value = cell.cell_contents
        except ValueError:  # not filled yet
            continue
        if uses.only_reads(name, value):
            yield from _of_each(name, value, depth, seen)
    for name in sorted(uses.variables):
        value = function.__globals__.get(name)
        if isinstance(value, types.ModuleType):
            inside = {key: vars(value).get(key) for key in sorted(uses.attributes)}
            yield from (
                (f"{name}.{key}", one)
                for key, one in inside.items()
                if isinstance(one, (int, float, np.ndarray))
            )
        elif uses.only_reads(name, value):
            yield from _of_each(name, value, depth, seen)


def _of_each(name: str, value: Any, depth: int, seen: set[int]) -> Iterator[tuple[str, Any]]:
    yield name, value
    if callable(value):
        yield from _values(value, depth - 1, seen)


def _attributes(
    instance: Any, method: types.FunctionType, depth: int, seen: set[int]
) -> Iterator[tuple[str, Any]]:
    """An object's own values, but for those that the method sets."""
    uses = _uses(method.__code__)
    if not isinstance(instance, type):
        for name, value in getattr(instance, "__dict__", {}).items():
            if name in uses.attributes and uses.only_reads(name, value):
                yield from _of_each(f"{type(instance).__name__}.{name}", value, depth, seen)
    yield from _values(method, depth, seen)


class _Uses(NamedTuple):
    """Names in a function's code, nested functions included."""

    variables: set[str]  # global ones
    attributes: set[str]
    written: set[str]
    is_changing: bool  # containers

    def only_reads(self, name: str, value: Any) -> bool:
        """False for what the function may set itself, such as a counter of its calls."""
        return name not in self.written and not (
            self.is_changing and isinstance(value, (list, dict, set))
        )


def _uses(code: types.CodeType) -> _Uses:
    found = _Uses(set(), set(), set(), bool(CHANGES & set(code.co_names)))
    for step in dis.get_instructions(code):
        if step.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            found.variables.add(step.argval)
        elif step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            found.attributes.add(step.argval)
        elif step.opname in ("STORE_GLOBAL", "STORE_DEREF", "STORE_ATTR", "DELETE_GLOBAL"):
            found.written.add(step.argval)
        found = found._replace(is_changing=found.is_changing or step.opname in CHANGES)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            inner = _uses(constant)
            names = (
                found.variables | inner.variables,
                found.attributes | inner.attributes,
                found.written | inner.written,
            )
            found = _Uses(*names, found.is_changing or inner.is_changing)
    return found


def _checksum(value: Any) -> str | None:
    """Of a number, a text, an array or a container of them; None for what cannot be compared."""
    seal = hashlib.blake2b(digest_size=8)
    return seal.hexdigest() if _feed(seal, value, DEEPEST) else None


def _feed(seal: Any, value: Any, depth: int) -> bool:
    if isinstance(value, (bool, int, float, complex, str, bytes, np.generic)):
        seal.update(f"{type(value).__name__} {value!r}".encode())
        return True
    if isinstance(value, Tracer):
        return False
    if isinstance(value, (np.ndarray, jax.Array)):
        return _feed_array(seal, value)
    if isinstance(value, (list, tuple, dict)) and depth and len(value) <= MOST_ENTRIES:
        seal.update(f"{type(value).__name__} {len(value)}".encode())
        entries = [*value.keys(), *value.values()] if isinstance(value, dict) else value
        return all([_feed(seal, entry, depth - 1) for entry in entries])
    return False


def _feed_array(seal: Any, value: Any) -> bool:
    seal.update(f"{value.dtype} {value.shape}".encode())
    if value.nbytes > MOST_BYTES and isinstance(value, jax.Array):
        seal.update(str(id(value)).encode())  # it cannot change in place
        return True
    if isinstance(value, jax.Array) and (
        jnp.issubdtype(value.dtype, jax.dtypes.extended) or not value.is_fully_addressable
    ):
        return False
    array = np.asarray(value)
    if array.dtype.hasobject:
        return False
    if array.nbytes > MOST_BYTES:
        array = array.reshape(-1)[:: -(-array.nbytes // MOST_BYTES)]
    seal.update(np.ascontiguousarray(array).tobytes())
    return True


def _name(function: Any) -> str:
    return getattr(function, "__name__", type(function).__name__)
