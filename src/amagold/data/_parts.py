"""Parts of the data in several processes, as one: what each has is told to all, and nothing of the
rows themselves.
"""

import base64
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from amagold.core.devices import use_all_cores
from amagold.data._checked_arrays import checked_data
from amagold.data._fields import ColumnMoments
from amagold.data._in_memory import InMemory
from amagold.data._memory_mapped import MemoryMapped
from amagold.data._protocol import Data
from amagold.data._split_over import host_arrays, pieces_of
from amagold.data._spread import CHAIN, DATA, Spread, spread_over
from amagold.data._viewed import Viewed
from amagold.processes import PeerError, share, watched

AXES = (CHAIN, DATA)
UNEVEN = 2  # times as many rows as the smallest part the largest may have


def parts_as_one(
    own: InMemory, seal: str, moments: ColumnMoments | None, *, is_of_all: bool
) -> Spread:
    """The examples of all processes; `own` are those of this one, and come after those of the
    processes before it.

    Args:
      seal: of all rows, or of the own ones.
      moments: of all rows, or of the own ones.
      is_of_all: which of the two.
    """
    count = jax.local_device_count()
    parts, again = (pieces_of(arrays, count) for arrays in host_arrays(own))
    form = [
        (jax.tree_util.keystr(path), str(leaf.dtype), list(leaf.shape))
        for path, leaf in jax.tree_util.tree_leaves_with_path(own.example)
    ]
    every = share(
        {
            "form": form,
            "counts": [len(jax.tree.leaves(part)[0]) for part in parts],
            "seal": seal,
            "moments": None
            if moments is None
            else (moments.num_rows, base64.b64encode(moments.as_bytes()).decode()),
        }
    )
    _check_forms([each["form"] for each in every])
    counts = [number for each in every for number in each["counts"]]
    if not min(counts):
        raise PeerError(
            "parts of the data must have a row for each device at least, but one has none; start "
            "fewer processes"
        )
    if max(counts) > UNEVEN * min(counts):
        rows = [sum(each["counts"]) for each in every]
        raise PeerError(
            f"parts of the data must be about as large as each other, because processes walk "
            f"through them side by side, but they have {', '.join(f'{n:,}' for n in rows)} rows; "
            "cut them anew, as amagold.data.open(path, part=(i, n)) does"
        )
    known = [_moments(each["moments"]) for each in every]
    if is_of_all:
        for place, each in enumerate(every):
            if each["seal"] != every[0]["seal"]:
                raise PeerError(
                    f"process {place} of {len(every)} has opened other data than process 0; give "
                    "all of them the same"
                )
        whole, of_all = seal, known[0]
    else:
        whole = " ".join(each["seal"] for each in every)
        of_all = None if any(each is None for each in known) else known[0]
        for each in known[1:]:
            of_all = None if of_all is None or each is None else of_all.with_others(each)
    mesh = Mesh(np.array(jax.devices()).reshape(1, -1), AXES)
    return spread_over(mesh, AXES, list(zip(parts, again, strict=True)), counts, whole, of_all)


def _check_forms(forms: list[list[Any]]) -> None:
    for place, form in enumerate(forms):
        for theirs, ours in zip(form, forms[0], strict=False):
            if theirs != ours:
                raise PeerError(
                    f"process {place} of {len(forms)} has other columns than process 0: "
                    f"{theirs[0] or 'rows'} of {theirs[1]} {theirs[2]}, and {ours[0] or 'rows'} of "
                    f"{ours[1]} {ours[2]}; give all of them parts of one table"
                )
        if len(form) != len(forms[0]):
            raise PeerError(
                f"process {place} of {len(forms)} has {len(form)} columns and process 0 has "
                f"{len(forms[0])}; give all of them parts of one table"
            )


def _moments(told: Any) -> ColumnMoments | None:
    return None if told is None else ColumnMoments.from_bytes(told[0], base64.b64decode(told[1]))


def part(data: Any) -> Data:
    """Examples of this process, as its part of those of all processes; every process calls it, in
    the same order. With one process it is all.

    Args:
      data: a pytree of arrays with one common leading axis, or `amagold.data.open(...)` of files
        that this process alone has.
    """
    use_all_cores()  # before the first array is made, because JAX fixes its devices then
    with watched():
        return _part(data if isinstance(data, Data) else InMemory(checked_data(data)))


def _part(own: Data) -> Data:
    if jax.process_count() == 1:
        return own
    if isinstance(own, Viewed):
        return Viewed(_part(own.data), own.view)
    if not isinstance(own, InMemory):
        raise ValueError(
            f"data must be arrays, or amagold.data.open, to be a part, got {type(own).__name__}"
        )
    moments = own.moments if isinstance(own, MemoryMapped) else None
    return parts_as_one(own, own.fingerprint(), moments, is_of_all=False)
