"""From the position that is sampled to what is reported: other units, constrained parameters and
quantities that follow from them.
"""

from typing import Any, Protocol

import jax
import numpy as np

from amagold.core import trees
from amagold.target._derived import derived_form, named, with_derived


class Transform(Protocol):
    """A map between the sampled position and the reported one, whose numbers are arrays
    (`trees.record`).

    Both ways are called on the host, with NumPy arrays that may have leading axes: draws, chains.
    """

    def __call__(self, position: trees.PyTree) -> trees.PyTree:
        """What is reported of a sampled position."""
        ...

    def inverse(self, reported: trees.PyTree) -> trees.PyTree:
        """The position of what the user says."""
        ...


def check_transform(transform: Any) -> None:
    """Raise unless there is a way there and one back."""
    if transform is not None and not (
        callable(transform) and callable(getattr(transform, "inverse", None))
    ):
        raise ValueError(
            "transform must map a position to what is reported, and back with transform.inverse, "
            "got "
            f"{type(transform).__name__}; give an object with both, or None"
        )


def reported(target: Any, positions: trees.PyTree, num_axes: int) -> trees.PyTree:
    """What the user sees of sampled positions, which have so many leading axes: parameters, and
    what is derived from them.
    """
    if not jax.tree.leaves(positions):
        return positions
    shown = _parameters(target, positions)
    if target.derived is None:
        return shown
    return with_derived(target.derived, jax.tree.map(np.asarray, shown), num_axes)


def reported_form(target: Any, position: trees.PyTree) -> trees.PyTree:
    """The same for one position of which only shapes and types are known."""
    shown = _parameters_form(target, position)
    if target.derived is None:
        return shown
    return {**named(shown), **derived_form(target.derived, shown)}


def _parameters(target: Any, positions: trees.PyTree) -> trees.PyTree:
    if target.transform is None:
        return positions
    return jax.tree.map(np.asarray, target.transform(jax.tree.map(np.asarray, positions)))


def _parameters_form(target: Any, position: trees.PyTree) -> trees.PyTree:
    if target.transform is None:
        return position
    zeros = jax.tree.map(lambda leaf: np.zeros(leaf.shape, leaf.dtype), position)
    return _parameters(target, zeros)


def sampled(target: Any, given: trees.PyTree, name: str) -> trees.PyTree:
    """The position of what the user gave, on the user's scale; `name` is the argument that it came
    by.
    """
    if target.transform is None or given is None:
        return given
    if isinstance(given, dict) and target.derived is not None and target.init is not None:
        # reported draws have what follows from the parameters beside them
        extra = derived_form(target.derived, _parameters_form(target, target.init))
        given = {name: part for name, part in given.items() if name not in extra}
    if target.init is not None:
        wanted = _parameters_form(target, target.init)
        form = lambda tree: jax.tree.map(lambda leaf: "array", tree)  # noqa: E731
        shapes = [
            (np.shape(leaf)[np.ndim(leaf) - np.ndim(like) :], np.shape(like))
            for leaf, like in _pairs(given, wanted)
        ]
        if form(given) != form(wanted) or any(ours != theirs for ours, theirs in shapes):
            own = jax.tree.map(np.shape, wanted)
            raise ValueError(
                f"{name} must be like the target's own positions, {own}, got "
                f"{jax.tree.map(np.shape, given)}; give that form"
            )
    return target.transform.inverse(jax.tree.map(np.asarray, given))


def _pairs(given: trees.PyTree, wanted: trees.PyTree) -> list[tuple[Any, Any]]:
    return list(zip(jax.tree.leaves(given), jax.tree.leaves(wanted), strict=False))
