"""What a stored run says about itself, checked once: after this nobody needs to doubt its form."""

import math
import types
import typing
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path
from typing import Any, NamedTuple

from amagold import planning
from amagold.core import trees
from amagold.core.files import UNUSABLE, as_path
from amagold.core.printable import printable
from amagold.sampling._columns import (
    STATISTICS,
    WARMUP_STATISTICS,
    block_statistics,
    move_statistics,
)
from amagold.sampling._given_sampler import Given
from amagold.sampling._labels import MIXED, check_label
from amagold.sampling._settings import Settings, check_assertions
from amagold.store._names import describe
from amagold.store._root import places
from amagold.store._structure import rebuild_structure
from amagold.store._zarr_store import ZarrStore

TIMES = ("warmup_time", "sampling_time", "compile_time")
OPTIONAL = {"step_size", "energy", "energy_error"}  # statistics that not every sampler has
STOPPED = (None, "interrupted", "out of time")
FACTS = {
    "is_complete": bool,
    "versions": dict,
    "gradients_per_step": int,
    "num_examples": int | None,
    "data_fingerprint": str | None,
}


class Description(NamedTuple):
    """Settings, plan and the form of a position (None for a class of the user's own)."""

    settings: Settings
    plan: "planning.Plan | planning.SweepPlan | planning.EffectsPlan | Given"
    position: trees.PyTree


def open_store(path: Any, *, read_only: bool = False) -> tuple[ZarrStore, Description]:
    """The arrays of a run and its description; raises one sentence when there is none, or it cannot
    be trusted.
    """
    remedy = "make one with amagold.sample(..., store=...)"
    try:
        folder = as_path("path", path, "a folder")
        is_run = any(file.is_file() for file in places(folder))
    except (ValueError, OSError):
        is_run = False
    if not is_run:
        named = f"path must be the folder of a stored run, but {str(path)!r} is not one"
        raise ValueError(f"{named}; {remedy}")
    check_assertions("path")
    with _one_sentence(path):
        store = ZarrStore(Path(path), read_only=read_only)
        return store, _describe(store)


@contextmanager
def _one_sentence(path: Any) -> Iterator[None]:
    try:
        yield
    except UNUSABLE as reason:
        named = f"{type(reason).__name__}: {reason}"
        detail = printable(str(reason) if isinstance(reason, ValueError) else named)
        raise ValueError(
            f"path must be the folder of a run stored by amagold, but what {str(path)!r} says of "
            f"itself cannot be used ({detail}); "
            "restore it from a backup, or give another path"
        ) from None


def _describe(store: ZarrStore) -> Description:
    attributes = store.attributes
    _check_texts(
        {name: value for name, value in attributes.items() if name not in ("position", "reported")}
    )
    settings = Settings.from_json(attributes["settings"])
    plan = _plan(attributes["plan"])
    position = None if attributes["position"] is None else rebuild_structure(attributes["position"])
    _check_facts(attributes, settings)
    check_label(attributes["label"])
    own = plan.label if isinstance(plan, Given) else "exact"
    if attributes["label"] not in (own, MIXED):
        raise ValueError(f"its label is {attributes['label']!r} where its plan's is {own!r}")
    stored = attributes.get("reported", attributes["position"])
    blocks = tuple(plan.blocks or ()) if isinstance(plan, Given) else ()
    of_blocks = block_statistics(blocks)
    # runs of earlier versions kept none
    of_moves = move_statistics(getattr(plan, "moves", ()))
    form = None if stored is None else rebuild_structure(stored)
    _check_groups(store, settings, form, of_blocks, of_moves)
    return Description(settings, plan, position)


def _plan(stored: Any) -> "planning.Plan | planning.SweepPlan | planning.EffectsPlan | Given":
    kinds: dict[str, Any] = {
        "Plan": planning.Plan,
        "SweepPlan": planning.SweepPlan,
        "EffectsPlan": planning.EffectsPlan,
        "Given": Given,
    }
    kind = kinds[stored["kind"]]
    plan = kind.from_json({name: value for name, value in stored.items() if name != "kind"})
    hints = typing.get_type_hints(kind)
    for field in fields(plan):
        if not _is_of(getattr(plan, field.name), hints[field.name]):
            raise TypeError(f"{field.name} of the plan must be of type {hints[field.name]}")
    str(plan)  # says all of it, or raises
    return plan


def _is_of(value: Any, hint: Any) -> bool:
    """Whether a value read from JSON is of an annotated type."""
    if isinstance(hint, types.UnionType):
        return any(_is_of(value, part) for part in typing.get_args(hint))
    if typing.get_origin(hint) in (list, tuple):
        return isinstance(value, list | tuple) and all(
            _is_of(part, typing.get_args(hint)[0]) for part in value
        )
    kind = typing.get_origin(hint) or hint
    return type(value) in (int, float) if kind is float else type(value) is kind


def _check_texts(content: Any) -> None:
    """Raise where a text would tell a terminal what to do."""
    if isinstance(content, str) and not content.isprintable():
        raise ValueError(f"{content!r} holds control characters")
    if isinstance(content, dict):
        _check_texts(list(content))
        _check_texts(list(content.values()))
    if isinstance(content, list):
        for part in content:
            _check_texts(part)


def _check_facts(attributes: dict[str, Any], settings: Settings) -> None:
    for name, kind in FACTS.items():
        if not _is_of(attributes[name], kind):
            raise TypeError(f"{name} must be of type {getattr(kind, '__name__', kind)}")
    for name in TIMES:
        if type(attributes[name]) not in (int, float) or not 0.0 <= attributes[name] < math.inf:
            raise ValueError(f"{name} must be seconds, not {attributes[name]!r}")
    for name in ("gradients_per_step", "num_examples"):
        if attributes[name] is not None and attributes[name] < 0:
            raise ValueError(f"{name} must not be negative")
    if attributes["stopped"] not in STOPPED:
        raise ValueError(f"stopped must be one of {STOPPED}")
    if attributes["seed"] != settings.seed:
        raise ValueError("seed must be that of the settings")
    if not _is_of(attributes.get("spoilt", []), list[str]):
        raise TypeError("spoilt must be a list of sentences")


def _check_groups(
    store: ZarrStore,
    settings: Settings,
    reported: trees.PyTree,
    of_blocks: dict[str, str],
    of_moves: dict[str, str],
) -> None:
    """Raise unless the arrays are those of a run with these settings, and draws of this form."""
    wanted = {"posterior", "sample_stats", "warmup_sample_stats"}
    wanted |= {"warmup_posterior"} if settings.warmup.keep else set()
    if set(store.groups) != wanted:
        raise ValueError(f"its groups are {store.groups} where {sorted(wanted)} belong")
    for name in store.groups:
        group = store.group(name)
        room = settings.num_warmup if name.startswith("warmup") else settings.num_samples
        if (group.num_chains, group.room) != (settings.num_chains, room):
            wrong = f"{name} has room for {group.num_chains} chains of {group.room} draws"
            raise ValueError(f"{wrong}, but the settings say {settings.num_chains} of {room}")
        found = {array: (column.shape, column.dtype) for array, column in group.columns.items()}
        if name.endswith("sample_stats"):
            statistics = WARMUP_STATISTICS if name.startswith("warmup") else STATISTICS
            if not name.startswith("warmup"):
                statistics = statistics | of_blocks | of_moves
            known = {array: ((), dtype) for array, dtype in statistics.items()}
            needed = known.keys() - OPTIONAL - of_moves.keys()
            if not found.items() <= known.items() or not needed <= found.keys():
                raise ValueError(f"{name} holds other statistics than amagold's")
            continue
        known = (
            found
            if reported is None
            else {array: known[:2] for array, known in describe(reported).items()}
        )
        if not found or found != known:
            raise ValueError(f"{name} holds other arrays than its positions")
