"""A part of a position, and the target of that part given the rest."""

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.target._density import Density
from amagold.target._posterior import Posterior

# a name of a mapping or NamedTuple, or a place along the first axis of an array; or several
Place = str | int | tuple[Any, ...]


def part_at(position: trees.PyTree, place: Place) -> trees.PyTree:
    """The part of a position that is at a place."""
    if isinstance(position, (jax.Array, np.ndarray)):
        return position[_rows(place)]
    if isinstance(position, jax.ShapeDtypeStruct):
        return jax.eval_shape(lambda whole: whole[_rows(place)], position)
    names = _by_name(position)
    return {name: names[name] for name in place} if isinstance(place, tuple) else names[place]


def with_part(position: trees.PyTree, place: Place, part: trees.PyTree) -> trees.PyTree:
    """The position with another part at a place."""
    if isinstance(position, (jax.Array, np.ndarray)):
        return jnp.asarray(position).at[_rows(place)].set(part)
    parts = part if isinstance(place, tuple) else {place: part}
    if isinstance(position, tuple):
        return position._replace(**parts)  # type: ignore[attr-defined]
    return type(position)({**position, **parts})


def places_of(position: trees.PyTree) -> set[Any]:
    """All names or places that a position has parts at."""
    if isinstance(position, (jax.Array, np.ndarray)) and np.ndim(position):
        return set(range(position.shape[0]))
    if isinstance(position, Mapping) or hasattr(position, "_fields"):
        return set(_by_name(position))
    raise ValueError(
        "target must have positions of several parts, a mapping, a NamedTuple or an array, got "
        f"{type(position).__name__}; give its parts names"
    )


def _rows(place: Place) -> Any:
    return np.array(place) if isinstance(place, tuple) else place


def _by_name(position: Any) -> Any:
    return position if isinstance(position, Mapping) else position._asdict()


@trees.record(static=("place",), functions=("function",))
class OfPart:
    """A function of a position as one of a part, given the rest. The rest is traced: other values
    of it are no other program.
    """

    function: Any
    whole: trees.PyTree  # the position; its own value at the place is never read
    place: Place

    def __call__(self, part: trees.PyTree, *arguments: Any) -> Any:
        return self.function(with_part(self.whole, self.place, part), *arguments)


def conditional(
    target: Posterior | Density, place: Place, position: trees.PyTree
) -> Posterior | Density:
    """The target of the part at a place, given the rest of a position: proportional to the target
    itself, with the same data. What holds for all positions only, such as bounds, is left out.
    """

    def of_part(function: Any) -> Any:
        return None if function is None else OfPart(function, position, place)

    density = {"init": part_at(position, place), "domain": of_part(target.domain)}
    if isinstance(target, Density):
        return Density(of_part(target.log_density), **density)
    return Posterior(
        of_part(target.log_likelihood), of_part(target.log_prior), target.examples, **density
    )
