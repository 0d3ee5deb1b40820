"""Opening a stored run. Nothing in it is executed: arrays, JSON and raw numbers only."""

from pathlib import Path
from typing import Any

from amagold.sampling.advice import advice_on, warn
from amagold.sampling.description import open_store
from amagold.sampling.result import Run


def open_groups(path: Path, num_draws: dict[str, int] | None = None) -> dict[str, Any]:
    """The groups of a run as xarray datasets, read from disk when they are looked at."""
    import pandas
    import xarray

    # draws are numbered from 0, which a range says without an array of all the numbers
    tree = xarray.open_datatree(path, engine="zarr", drop_variables=["draw"])
    groups = {name: child.to_dataset().isel(draw=slice((num_draws or {}).get(name))) for name, child in tree.children.items()}
    for group in groups.values():
        for variable in group.variables.values():
            variable.attrs.pop("constant", None)
    return {name: group.assign_coords(draw=("draw", pandas.RangeIndex(group.sizes["draw"]))) for name, group in groups.items()}


def load(path: str | Path) -> Run:
    """The run in a folder: complete, partial, or still going on in another process.

    All draws are read once and compared with their checksums. Damaged ones are reported, and the draws before them returned.
    """
    store, description = open_store(path, read_only=True)
    readable, sentences = {}, []
    for group in store.groups:
        damage = store.first_damage(group)
        if damage is not None:
            readable[group] = damage[0]
            extent = f"the first {damage[0]} of {store.length(group)} are readable"
            sentences.append(f"damaged draws: {damage[1]}; {extent}. amagold.resume makes the rest again")
    groups = open_groups(store.path, readable)
    # statistics of draws that cannot be read would count for nothing
    usable = min(groups[name].sizes["draw"] for name in ("posterior", "sample_stats"))
    for name in ("posterior", "sample_stats"):
        groups[name] = groups[name].isel(draw=slice(usable))
    sentences += [f"spoilt draws: {sentence}" for sentence in store.attributes.get("spoilt", [])]
    sentences += advice_on(groups["posterior"], groups["sample_stats"], "energy_error" in groups["sample_stats"])
    warn(sentences, depth=1)
    return Run(groups, store.attributes, description.plan, sentences, store.path)
