"""What the axes of reported variables are called, and the places along them, in ArviZ's terms."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

LONE, AXIS = "theta", "parameter"  # of a position that is one array


class Labels(NamedTuple):
    """Hashable, because a target is static but for its numbers."""

    dims: tuple[tuple[str, tuple[str, ...]], ...] = ()  # of a variable, after chain and draw
    names: tuple[tuple[str, tuple[str, ...]], ...] = ()  # along an axis

    def of_variables(self, called: Mapping[str, str]) -> "Labels":
        """The same where variables are called otherwise."""
        dims = tuple((called.get(variable, variable), axes) for variable, axes in self.dims)
        return self._replace(dims=dims)

    def to_json(self) -> dict[str, Any]:
        return {
            "dims": {variable: list(axes) for variable, axes in self.dims},
            "names": {axis: list(places) for axis, places in self.names},
        }


def labels_of(names: Any, dims: Any) -> Labels | None:
    """From what the user gave: `dims` names the axes of variables, `names` the places along axes; a
    plain list of names is for a position that is one vector.
    """
    if names is None and dims is None:
        return None
    if isinstance(names, Sequence) and not isinstance(names, str):
        if dims is not None:
            raise ValueError(
                "names must say which axis they are of where dims are given, got a list; give "
                "names={'axis': [...]}"
            )
        names, dims = {AXIS: names}, {LONE: (AXIS,)}
    names, dims = {} if names is None else names, {} if dims is None else dims
    for name, given in (("names", names), ("dims", dims)):
        if not isinstance(given, Mapping) or any(
            isinstance(value, str) or not isinstance(value, Sequence) for value in given.values()
        ):
            raise ValueError(
                f"{name} must map each name to a list, got {given!r}; as in "
                "names={'predictor': ['age', 'dose']}, dims={'theta': ['predictor']}"
            )
    stray = [
        axis for axis in names if axis not in {each for axes in dims.values() for each in axes}
    ]
    if stray:
        raise ValueError(
            f"names must be of axes that dims mention, but {stray[0]!r} is none; give "
            f"dims={{'variable': [{stray[0]!r}]}}"
        )
    return Labels(
        tuple((str(variable), tuple(map(str, axes))) for variable, axes in dims.items()),
        tuple((str(axis), tuple(map(str, places))) for axis, places in names.items()),
    )


def check_labels(labels: Labels | None, shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raise where they do not fit the reported variables."""
    if labels is None:
        return
    named = dict(labels.names)
    for variable, axes in labels.dims:
        if variable not in shapes:
            known = ", ".join(map(repr, shapes))
            raise ValueError(f"dims must be of variables, but {variable!r} is none of {known}")
        if len(axes) != len(shapes[variable]):
            raise ValueError(
                f"dims must name every axis of {variable!r}, which has {len(shapes[variable])}, "
                f"got {list(axes)}"
            )
        for axis, length in zip(axes, shapes[variable], strict=True):
            if axis in named and len(named[axis]) != length:
                raise ValueError(
                    f"names must have one for every place along {axis!r}, of which there are "
                    f"{length}, got {len(named[axis])}"
                )
