"""Opening a stored run. Nothing in it is executed: arrays, JSON and raw numbers only."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from amagold.sampling._advice import advice_on, warn
from amagold.sampling._description import open_store
from amagold.sampling._run import Run
from amagold.store._root import PRIVATE
from amagold.store._zarr_store import ZarrStore

TABLE = "table"  # the file of a fitted model
NONE: Mapping[str, int] = {}


def open_groups(place: Path | ZarrStore, num_draws: Mapping[str, int] = NONE) -> dict[str, Any]:
    """The groups of a run as xarray datasets, read from disk when they are looked at."""
    from amagold.store._reader import open_group

    store = place if isinstance(place, ZarrStore) else ZarrStore(place, read_only=True)
    return {name: open_group(store, name, num_draws.get(name)) for name in store.groups}


def stored_doubts(folder: Path) -> list[str]:
    """What the table of a run could not say; nothing where it was not fitted to one."""
    if not (folder / PRIVATE / TABLE).exists():
        return []
    from amagold.tables._stored_model import kept_doubts

    return kept_doubts(folder)


def load(path: str | Path) -> Run:
    """The run in a folder: complete, partial, or still going on in another process.

    All draws are read once and compared with their checksums. Damaged ones are reported, and the
    draws before them returned. Checksums tell damage, not forgery: a store is safe to open, and as
    true as its source.
    """
    store, description = open_store(path, read_only=True)
    readable = {}
    sentences = [f"{sentence}; amagold.resume writes it again" for sentence in store.problems()]
    for group in store.groups:
        damage = store.first_damage(group)
        if damage is not None:
            readable[group] = damage[0]
            extent = f"the first {damage[0]} of {store.length(group)} are readable"
            is_record = group.startswith("warmup")
            rest = "the record ends there" if is_record else "amagold.resume makes the rest again"
            sentences.append(f"damaged draws: {damage[1]}; {extent}. {rest}")
    groups = open_groups(store, readable)
    # statistics of draws that cannot be read would count for nothing
    usable = min(groups[name].sizes["draw"] for name in ("posterior", "sample_stats"))
    for name in ("posterior", "sample_stats"):
        groups[name] = groups[name].isel(draw=slice(usable))
    sentences += [f"spoilt draws: {sentence}" for sentence in store.attributes.get("spoilt", [])]
    sentences += advice_on(
        groups["posterior"],
        groups["sample_stats"],
        "energy_error" in groups["sample_stats"],
        description.plan,
    )
    sentences += stored_doubts(store.path)
    warn(sentences, depth=1)
    return Run(groups, store.attributes, description.plan, sentences, store.path)
