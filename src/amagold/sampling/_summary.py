"""ArviZ's summary in bounded memory: some parameters at a time, of very many draws every so
many.
"""

from collections.abc import Iterator
from typing import Any

import numpy as np

from amagold.core.arviz import arviz_stats

MOST_DRAWS = 10**6  # of all chains together, that ArviZ is given of one parameter
FEWEST_DRAWS = 10  # of one chain, without which there is no R-hat
MOST_VALUES = 10**7  # numbers in memory at a time
SAMPLE_DIMS = ("chain", "draw")
SELECTION = ("group", "var_names", "filter_vars")  # options that choose among the draws
RAW: dict[str, Any] = {"fmt": "xarray", "round_to": "none"}


def summarise(
    tree: Any, *, fmt: str = "wide", round_to: Any = 2, **options: Any
) -> tuple[Any, int]:
    """`arviz_stats.summary` of a tree of groups, and that every how many draws it looked at.

    Mean and standard deviation are those of all draws in any case.
    """
    from arviz_base import dataset_to_dataframe

    dataset, rest = _chosen(tree, **options)
    if not all(variable.dims[:2] == SAMPLE_DIMS for variable in dataset.data_vars.values()):
        return arviz_stats().summary(tree, fmt=fmt, round_to=round_to, **options), 1
    num_chains, num_draws = (dataset.sizes[name] for name in SAMPLE_DIMS)
    stride = max(1, min(-(-num_chains * num_draws // MOST_DRAWS), num_draws // FEWEST_DRAWS))
    variables = {name: variable for name, variable in dataset.data_vars.items() if variable.size}
    table: Any = _merged(
        {name: _of_variable(each, stride, rest) for name, each in variables.items()}
    )
    if fmt == "wide":
        table = dataset_to_dataframe(table, sample_dims=["summary"]).T
    elif fmt == "long":
        table = table.to_dataframe().reset_index().set_index("summary")
        table.index = list(table.index)
    elif fmt != "xarray":
        raise ValueError(f"fmt must be 'wide', 'long' or 'xarray', got {fmt!r}")
    return table if round_to in (None, "None", "none") else table.round(round_to), stride


def _chosen(tree: Any, coords: Any = None, **options: Any) -> tuple[Any, dict[str, Any]]:
    """The draws that are asked for, not read yet, and the options that are left."""
    from arviz_base import extract

    asked = {name: options.pop(name) for name in SELECTION if name in options}
    dims = options.get("sample_dims") or list(SAMPLE_DIMS)
    dataset = extract(tree, sample_dims=dims, combined=False, keep_dataset=True, **asked)
    return (dataset if coords is None else dataset.sel(coords)), options


def _merged(parts: dict[Any, Any]) -> Any:
    import xarray

    return xarray.Dataset(parts)


def _of_variable(variable: Any, stride: int, options: dict[str, Any]) -> Any:
    """The statistics of one variable: an axis `summary`, then its own."""
    thinned = variable.isel(draw=slice(None, None, stride))
    axes = variable.dims[2:]
    num_draws = thinned.sizes["chain"] * thinned.sizes["draw"]
    # longer than the name of any axis, which a variable of more axes must not have
    own = " ".join(("values", *map(str, axes)))
    found: Any = None
    for block in _blocks(variable.shape[2:], max(1, MOST_VALUES // num_draws)):
        place = dict(zip(axes, block, strict=True))
        table: Any = arviz_stats().summary(_merged({own: thinned.isel(place)}), **options, **RAW)
        part = table[own].transpose("summary", *axes)
        if found is None:
            empty = np.zeros((part.sizes["summary"], *variable.shape[2:]))
            one = variable.isel(chain=0, draw=0, drop=True)
            found = one.expand_dims(summary=part["summary"].values).copy(data=empty)
        found[{"summary": slice(None), **place}] = part.values
    if stride > 1 and "mean" in found["summary"]:
        _put_moments(found, variable, bool(options.get("skipna")))
    return found


def _put_moments(found: Any, variable: Any, skipna: bool) -> None:
    """Mean and standard deviation of all draws, read block by block and added in float64."""
    at_once = max(1, MOST_VALUES // max(1, variable.size // variable.sizes["draw"]))
    count, mean, squares = (np.zeros(variable.shape[2:]) for _ in range(3))
    for start in range(0, variable.sizes["draw"], at_once):
        values = np.asarray(variable.isel(draw=slice(start, start + at_once)), np.float64)
        is_used = ~np.isnan(values) if skipna else np.ones_like(values, bool)
        num_new = is_used.sum(axis=(0, 1))
        new_mean = np.where(is_used, values, 0.0).sum(axis=(0, 1)) / np.maximum(num_new, 1)
        new_squares = (np.where(is_used, values - new_mean, 0.0) ** 2).sum(axis=(0, 1))
        # sums of squares of n and m draws with means a and b are joined by n m / (n + m) (b - a)^2
        total, shift = np.maximum(count + num_new, 1), new_mean - mean
        squares += new_squares + shift**2 * count * num_new / total
        mean += shift * num_new / total
        count += num_new
    known = np.where(count > 0, 1.0, np.nan)
    found.loc[{"summary": "mean"}] = mean * known
    found.loc[{"summary": "sd"}] = np.sqrt(squares / np.maximum(count, 1)) * known


def _blocks(shape: tuple[int, ...], most: int) -> Iterator[tuple[slice, ...]]:
    """Slices that cover an array of this shape, each with at most so many numbers."""
    if not shape:
        yield ()
        return
    of_one = int(np.prod(shape[1:], dtype=np.int64))
    step = max(1, most // max(1, of_one))
    for start in range(0, shape[0], step):
        if step > 1 or of_one <= most:
            yield (slice(start, start + step), *(slice(None) for _ in shape[1:]))
        else:
            yield from ((slice(start, start + 1), *rest) for rest in _blocks(shape[1:], most))
