"""Sentences for a user's functions and positions: what they must be, and what to do."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.target._constrained import OfConstrained
from amagold.target._linear_likelihood import LinearLikelihood
from amagold.target._user_function import UserFunction

MOST_WORDS = 200  # of a position's description in a sentence


NUMPY = (
    "it calls NumPy (or another library) on values that JAX traces; use jax.numpy (jnp) instead "
    "of numpy"
)
BRANCH = (
    "it asks with Python's if, and, or, while whether a traced value is true; choose with "
    "jnp.where, and join conditions with & and |"
)
NUMBER = (
    "it makes a Python number of a traced value, as float(), int(), range() and the math module "
    "do; use jax.numpy (jnp)"
)
CAUSES = (
    (jax.errors.TracerArrayConversionError, NUMPY),
    (jax.errors.TracerBoolConversionError, BRANCH),
    (jax.errors.TracerIntegerConversionError, NUMBER),
    (
        jax.errors.NonConcreteBooleanIndexError,
        "it picks by a traced condition, which leaves the shape unknown; use jnp.where instead",
    ),
    (jax.errors.ConcretizationTypeError, NUMBER),
)


def traced(name: str, function: Callable[..., Any], **arguments: Any) -> Any:
    """The form of what the user's function returns; its own errors come with a sentence. Nothing is
    computed.
    """
    if isinstance(function, OfConstrained):
        # the user's own function, of what it is given
        position, *others = arguments.items()
        seen = jax.eval_shape(function.constrained, position[1])
        return traced(name, function.function, **{position[0]: seen}, **dict(others))
    if isinstance(function, (UserFunction, LinearLikelihood)):
        function.check(name)
    try:
        return jax.eval_shape(function, *arguments.values())
    except Exception as reason:
        call = f"{name}({', '.join(arguments)})"
        cause = next((words for kind, words in CAUSES if isinstance(reason, kind)), None)
        if cause is not None:
            raise ValueError(f"{name} must be written for JAX, but {cause} (in {call})") from reason
        if len(arguments) == 2 and _works(function, *reversed(arguments.values())):
            raise ValueError(
                f"{name} must take its arguments in the order {call}, but works only with them "
                "swapped; swap them"
            ) from reason
        given = ", ".join(f"{word} = {_form(value)}" for word, value in arguments.items())
        first = str(reason).strip().split("\n")[0]
        raise ValueError(
            f"{call} must work for {given}, but it raised {type(reason).__name__}: {first}; mend "
            "the function"
        ) from reason


def _works(function: Callable[..., Any], *arguments: Any) -> bool:
    try:
        return getattr(jax.eval_shape(function, *arguments), "shape", None) == ()
    except Exception:
        return False


def _form(tree: trees.PyTree) -> str:
    """Types and shapes, for a sentence."""
    text = str(
        jax.tree.map(
            lambda leaf: (
                jax.typeof(leaf)
                if not hasattr(leaf, "dtype")
                else f"{leaf.dtype}{list(leaf.shape)}"
            ),
            tree,
        )
    )
    text = text.replace("'", "").replace('"', "")
    return text if len(text) <= MOST_WORDS else f"{text[:MOST_WORDS]}..."


def returns_one_number(
    name: str, function: Callable[..., Any], *, remedy: str, **arguments: Any
) -> None:
    """Raise unless the function has the shape of one floating-point number. Nothing is computed."""
    result = traced(name, function, **arguments)
    shape = getattr(result, "shape", None)
    if shape != ():
        found = f"shape {shape}" if shape is not None else type(result).__name__
        raise ValueError(f"{name} must return one number, got {found}; {remedy}")
    if not jnp.issubdtype(result.dtype, jnp.floating):
        raise ValueError(
            f"{name} must return a floating-point number, got {result.dtype}; {remedy}"
        )


def position_is_usable(target: Any, position: trees.PyTree) -> None:
    """Raise when a chain cannot start here: not finite, outside the domain, or of zero density."""
    if not trees.is_concrete(position):
        return
    for path, leaf in jax.tree_util.tree_leaves_with_path(position):
        bad = int(np.sum(~np.isfinite(np.asarray(leaf))))
        if bad:
            name = f"position{jax.tree_util.keystr(path)}"
            raise ValueError(
                f"{name} must be finite, got {bad} non-finite value(s); start the chain from "
                "finite numbers"
            )
    if target.domain is not None:
        returns_a_truth_value(target.domain, position)
        inside = target.is_inside(position)
        if trees.is_concrete(inside) and not bool(inside):
            raise ValueError(
                "position must lie inside the target's domain, but domain(position) is False; "
                "start inside it"
            )


def returns_a_truth_value(domain: Callable[..., Any], position: trees.PyTree) -> None:
    """Raise unless `domain(position)` is one boolean."""
    result = traced("domain", domain, position=position)
    if getattr(result, "shape", None) != () or result.dtype != jnp.bool_:
        found = (
            f"shape {result.shape} of {result.dtype}"
            if hasattr(result, "shape")
            else type(result).__name__
        )
        raise ValueError(
            f"domain must return one boolean, got {found}; reduce it with jnp.all(...)"
        )
