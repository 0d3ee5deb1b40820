"""Run-time checks of the annotations of the numerical core, for `jaxtyping.install_import_hook`."""

from functools import cache
from types import UnionType
from typing import Annotated, Union, get_args, get_origin, get_type_hints

import jaxtyping
from beartype import beartype
from beartype.door import is_bearable
from beartype.vale import Is

# the rooms whose functions and records are checked
ROOMS = ("energy", "mode", "gradients", "trajectory", "acceptance")
MODULES = tuple(f"amagold.{room}" for room in ROOMS)


def install():
    """Check what is imported of these rooms from now on."""
    jaxtyping.install_import_hook(MODULES, "shape_checks.checked")


def checked(function):
    """The function with arguments and result checked by beartype, and NamedTuples among them by
    field: JAX rebuilds those from anything, so that they cannot be checked where they are made.
    """
    hints = function.__annotations__
    function.__annotations__ = {name: with_fields(hint) for name, hint in hints.items()}
    return beartype(function)


def with_fields(hint):
    """The hint, with a look into the fields of every NamedTuple in it."""
    if hasattr(hint, "_fields") and hint.__module__.startswith(MODULES):
        return Annotated[hint, Is[fields_fit]]
    origin, parts = get_origin(hint), tuple(map(with_fields, get_args(hint)))
    if parts == get_args(hint) or origin not in (tuple, list, Union, UnionType):
        return hint
    # of parts that are not known before
    return Union[parts] if origin in (Union, UnionType) else origin[parts]  # noqa: UP007


def fields_fit(value):
    """True, or an error that names the field; a record's axes are its own, as a function's are."""
    with jaxtyping.jaxtyped("context"):
        for name, hint in hints_of(type(value)).items():
            if not is_bearable(getattr(value, name), hint):
                found = f"{type(value).__name__}.{name} is {getattr(value, name)!r}"
                raise TypeError(f"{found}, which is not of type {hint}")
    return True


@cache
def hints_of(record):
    return {name: with_fields(hint) for name, hint in get_type_hints(record).items()}
