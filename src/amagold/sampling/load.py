"""Opening a stored run. Nothing in it is executed: arrays, JSON and raw numbers only."""

import json
from pathlib import Path
from typing import Any

from amagold.sampling.advice import advice_on, warn
from amagold.sampling.given import Given
from amagold.sampling.result import Run
from amagold.store.zarr_store import ZarrStore
from amagold.warmup.plan import Plan


def open_store(path: str | Path) -> ZarrStore:
    """The arrays of a run; raises when there is none."""
    folder = Path(path)
    if not (folder / "zarr.json").is_file():
        raise ValueError(
            f"path must be the folder of a stored run, but {str(folder)!r} is not one; make one with amagold.sample(..., store=...)"
        )
    store: Any = None
    try:
        store = ZarrStore(folder)
        is_a_run = "settings" in store.attributes and store.length("posterior") >= 0
    except (KeyError, TypeError, json.JSONDecodeError):
        is_a_run = False
    if not is_a_run:
        raise ValueError(f"path must be the folder of a run stored by amagold, but {str(folder)!r} holds something else; give another path")
    return store


def plan_of(store: ZarrStore) -> Plan | Given:
    """The plan as it was stored."""
    stored = dict(store.attributes["plan"])
    kind = {"Plan": Plan, "Given": Given}[stored.pop("kind")]
    return kind.from_json(stored)


def open_groups(path: Path, num_draws: dict[str, int] | None = None) -> dict[str, Any]:
    """The groups of a run as xarray datasets, read from disk when they are looked at."""
    import pandas
    import xarray

    # draws are numbered from 0, which a range says without an array of all the numbers
    tree = xarray.open_datatree(path, engine="zarr", drop_variables=["draw"])
    groups = {name: child.to_dataset().isel(draw=slice((num_draws or {}).get(name))) for name, child in tree.children.items()}
    return {name: group.assign_coords(draw=("draw", pandas.RangeIndex(group.sizes["draw"]))) for name, group in groups.items()}


def load(path: str | Path) -> Run:
    """The run in a folder: complete, partial, or still going on in another process.

    All draws are read once and compared with their checksums. Damaged ones are reported, and the draws before them returned.
    """
    store = open_store(path)
    readable, sentences = {}, []
    for group in store.groups:
        damage = store.first_damage(group)
        if damage is not None:
            readable[group] = damage[0]
            sentences.append(
                f"damaged draws: {damage[1]}; the first {damage[0]} of {store.length(group)} are readable. amagold.resume makes the rest "
                "again"
            )
    groups = open_groups(store.path, readable)
    # statistics of draws that cannot be read would count for nothing
    usable = min(groups[name].sizes["draw"] for name in ("posterior", "sample_stats"))
    for name in ("posterior", "sample_stats"):
        groups[name] = groups[name].isel(draw=slice(usable))
    attributes = store.attributes
    if attributes.get("is_complete") or usable:
        sentences += advice_on(groups["posterior"], groups["sample_stats"], "energy" in groups["sample_stats"])
    warn(sentences, depth=1)
    return Run(groups, attributes, plan_of(store), sentences, store.path)
