"""Draws with the names of their axes and of the places along them."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import xarray

DRAWS = ("posterior", "warmup_posterior")


def labelled(groups: dict[str, "xarray.Dataset"], labels: Any) -> dict[str, "xarray.Dataset"]:
    """The groups with labels as a target gave them. They may come from a stranger's store: what
    does not fit the draws is left out.
    """
    if not isinstance(labels, dict):
        return groups
    dims, names = (labels.get(key) for key in ("dims", "names"))
    if not isinstance(dims, dict) or not isinstance(names, dict):
        return groups
    return {
        name: _with_labels(group, dims, names) if name in DRAWS else group
        for name, group in groups.items()
    }


def _with_labels(
    group: "xarray.Dataset", dims: dict[Any, Any], names: dict[Any, Any]
) -> "xarray.Dataset":
    for variable, axes in dims.items():
        if variable not in group.data_vars or not _is_texts(axes):
            continue
        own, shape = group[variable].dims[2:], group[variable].shape[2:]
        lengths = dict(zip(axes, shape, strict=False))
        if len(own) != len(axes) or len(lengths) < len(axes) or not _has_room(group, lengths):
            continue
        renamed = group[variable].drop_vars([axis for axis in own if axis in group.coords])
        renamed = renamed.rename(dict(zip(own, axes, strict=True)))
        group = group.assign({variable: renamed})
        group = group.drop_vars([axis for axis in own if axis in group.coords])
        group = group.assign_coords(
            {
                axis: names[axis]
                for axis in axes
                if _is_texts(names.get(axis)) and len(names[axis]) == lengths[axis]
            }
        )
    return group


def _has_room(group: "xarray.Dataset", lengths: dict[str, int]) -> bool:
    """Whether the axes are new, or those of other variables and as long."""
    taken = {"chain", "draw", *map(str, group.data_vars)}
    return not taken & set(lengths) and all(
        group.sizes.get(axis, length) == length for axis, length in lengths.items()
    )


def _is_texts(values: Any) -> bool:
    return isinstance(values, list) and all(isinstance(value, str) for value in values)
