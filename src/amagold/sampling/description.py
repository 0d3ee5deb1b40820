"""What a stored run says about itself, checked once: after this nobody needs to doubt it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from amagold import trees
from amagold.sampling.given import Given
from amagold.sampling.settings import Settings, check_assertions
from amagold.store.structure import rebuild_structure
from amagold.store.zarr_store import ZarrStore
from amagold.warmup.plan import Plan

TIMES = ("warmup_time", "sampling_time", "compile_time")


class Description(NamedTuple):
    """Settings, plan and the form of a position (None for a class of the user's own)."""

    settings: Settings
    plan: Plan | Given
    position: trees.PyTree


def open_store(path: Any, *, read_only: bool = False) -> tuple[ZarrStore, Description]:
    """The arrays of a run and its description; raises one sentence when there is none, or it cannot be trusted."""
    if not isinstance(path, (str, Path)) or not (Path(path) / "zarr.json").is_file():
        raise ValueError(
            f"path must be the folder of a stored run, but {str(path)!r} is not one; make one with amagold.sample(..., store=...)"
        )
    check_assertions("path")
    with _one_sentence(path):
        store = ZarrStore(Path(path), read_only=read_only)
        return store, _describe(store)


@contextmanager
def _one_sentence(path: Any) -> Iterator[None]:
    try:
        yield
    # whatever a stranger wrote: wrong types, missing keys, endless nesting, arrays that are not there
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError, FileNotFoundError) as reason:
        detail = f"{type(reason).__name__}: {reason}"
        raise ValueError(
            f"path must be the folder of a run stored by amagold, but what {str(path)!r} says of itself cannot be used ({detail}); "
            "give another path"
        ) from None


def _describe(store: ZarrStore) -> Description:
    attributes = store.attributes
    stored = dict(attributes["plan"])
    plan = {"Plan": Plan, "Given": Given}[stored.pop("kind")].from_json(stored)
    position = None if attributes["position"] is None else rebuild_structure(attributes["position"])
    settings = Settings.from_json(attributes["settings"])
    for name, kind in (("label", str), ("is_complete", bool), ("versions", dict), ("gradients_per_step", int)):
        if not isinstance(attributes[name], kind):
            raise TypeError(f"{name} must be a {kind.__name__}")
    for name in TIMES:
        attributes[name] = float(attributes[name])
    if not {"data_fingerprint", "num_examples", "stopped"} <= set(attributes):
        raise KeyError("data_fingerprint, num_examples or stopped")
    for group in ("posterior", "sample_stats", "warmup_sample_stats"):
        wanted = settings.num_warmup if group.startswith("warmup") else settings.num_samples
        if store.capacity(group) != wanted:
            raise ValueError(f"{group} has room for {store.capacity(group)} draws where the settings say {wanted}")
    return Description(settings, plan, position)
