"""A user's function as a target keeps it: with arrays for what it returns, and an eye on what it
reads from outside.
"""

from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.target._outside_reads import Reading, changed_in_place, read_by


@trees.record(static=("reading",), functions=("function",))
class UserFunction:
    """JAX traces a function once and keeps what it saw. What the function reads beside its
    arguments is therefore part of it:

    the same function reading other numbers is another function, and is traced anew.
    """

    function: Callable[..., Any]
    reading: Reading

    def __call__(self, *arguments: Any) -> Any:
        result = self.function(*arguments)
        # a flat prior may be `lambda position: 0.0`
        if isinstance(result, (bool, np.bool_)):
            return jnp.asarray(result)
        return jnp.asarray(result, float) if isinstance(result, (int, float, np.number)) else result

    def check(self, name: str) -> None:
        """Raise when something that the function reads has changed since the target was built."""
        now, before = dict(read_by(self.function)), dict(self.reading)
        changed = [place for place in before if now.get(place) != before[place]]
        if changed:
            raise ValueError(
                f"{name} reads {changed[0]}, which has changed since the target was built, but "
                "JAX computes with what it saw first; build "
                "the target again, or pass what changes in the data"
            )


def as_function(name: str, function: Any) -> Any:
    """The function ready to be a part of a target; a record of numbers, or None, as it is."""
    if function is None or trees.is_traceable(function):
        return function
    changed = changed_in_place(function)
    if changed is not None:
        raise ValueError(
            f"{name} reads {changed}, an array that was changed in place, but JAX computes with "
            "what it held first; make a new array "
            "of the new numbers, or pass them in the data"
        )
    return UserFunction(trees.hashable(function), read_by(function))
