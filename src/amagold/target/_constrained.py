"""Targets whose functions are written in constrained parameters: free numbers are sampled, and the
log Jacobian is a part of the prior.
"""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.target.transforms import Constraint


@trees.record(static=("kinds",))
class Constrained:
    """Each named part of a position is of its kind; the other parts are free. The name None is the
    whole position.
    """

    kinds: tuple[tuple[str | None, Constraint], ...]

    def __call__(self, position: trees.PyTree) -> trees.PyTree:
        return self._each(position, lambda kind, leaf, name: kind(leaf))

    def inverse(self, reported: trees.PyTree) -> trees.PyTree:
        """Raises a sentence where a value is not of its kind."""
        return self._each(reported, _free)

    def log_jacobian(self, position: trees.PyTree) -> jax.Array:
        """log |det| of the derivative: a sum, because parts do not depend on each other."""
        found: list[Any] = []
        self._each(position, lambda kind, leaf, name: found.append(kind.log_jacobian(leaf)))
        return jnp.asarray(sum(found))

    def _each(self, tree: trees.PyTree, action: Callable[[Constraint, Any, str], Any]) -> Any:
        def on(kind: Constraint, name: str, part: Any) -> Any:
            return jax.tree.map(lambda leaf: action(kind, leaf, name), part)

        known = dict(self.kinds)
        if None in known:
            return on(known[None], "the position", tree)
        missing = (
            [name for name in known if name not in tree] if isinstance(tree, dict) else [*known]
        )
        if missing:
            parts = ", ".join(map(repr, tree)) if isinstance(tree, dict) else "no names"
            raise ValueError(
                f"transform must be of parts of the position, but {missing[0]!r} is none: it has "
                f"{parts}; let positions be dicts with these names"
            )
        return {
            name: on(known[name], repr(name), part) if name in known else part
            for name, part in tree.items()
        }


def _free(kind: Constraint, leaf: Any, name: str) -> np.ndarray:
    values = np.asarray(leaf)
    inside = kind.holds(values.astype(np.float64))
    if not np.all(inside):
        shown = np.array2string(values.ravel()[:4], precision=4, separator=", ")
        raise ValueError(f"{name} must be {kind.words}, got {shown}; start inside")
    free = kind.inverse(values)
    return free.astype(values.dtype) if np.issubdtype(values.dtype, np.floating) else free


def constrained_by(transform: Any) -> Constrained | None:
    """Of what the user gave for `transform`: None where it says no kinds of parameters."""
    if isinstance(transform, Constraint):
        return Constrained(((None, transform),))
    if not isinstance(transform, Mapping):
        return None
    wrong = [name for name, kind in transform.items() if not isinstance(kind, Constraint)]
    if wrong or not transform:
        found = f"{type(transform[wrong[0]]).__name__} for {wrong[0]!r}" if wrong else "none"
        raise ValueError(
            f"transform must map names of parameters to their kinds, got {found}; as in "
            "transform={'sigma': amagold.transforms.positive()}"
        )
    return Constrained(tuple((str(name), kind) for name, kind in transform.items()))


def free_position(constrained: Constrained, init: trees.PyTree) -> trees.PyTree:
    """Where the user starts, in free numbers of the same types."""
    free = constrained.inverse(jax.tree.map(np.asarray, init))
    return jax.tree.map(lambda leaf, like: jnp.asarray(leaf, like.dtype), free, init)


@trees.record(functions=("function",))
class OfConstrained:
    """A user's function of constrained parameters, as one of free numbers."""

    function: Callable[..., Any]
    constrained: Constrained

    def __call__(self, position: trees.PyTree, *arguments: Any) -> Any:
        return self.function(self.constrained(position), *arguments)


@trees.record()
class DensityOfConstrained(OfConstrained):
    """log p(u) = log p(x(u)) + log |det dx/du|."""

    def __call__(self, position: trees.PyTree, *arguments: Any) -> Any:
        value = self.function(self.constrained(position), *arguments)
        return value + self.constrained.log_jacobian(position)


def constrain(target: Any, density: str, *others: str) -> None:
    """Make a new target's functions of constrained parameters into ones of free numbers, and its
    init too; nothing is done where it names no kinds, or has been through this.
    """
    constrained = constrained_by(target.transform)
    if constrained is None:
        return
    if target.bounds is not None:
        raise ValueError(
            "bounds must be None where transform names constrained parameters, because they are "
            "for predictors that are linear in what is sampled; leave them out, or write the "
            "functions in free parameters"
        )
    wrapped: dict[str, Any] = {density: DensityOfConstrained(getattr(target, density), constrained)}
    for name in (*others, "domain"):
        if getattr(target, name) is not None:
            wrapped[name] = OfConstrained(getattr(target, name), constrained)
    if target.init is not None:
        wrapped["init"] = free_position(constrained, target.init)
    for name, value in (*wrapped.items(), ("transform", constrained)):
        object.__setattr__(target, name, value)
