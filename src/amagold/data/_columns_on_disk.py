"""Data on disk as a table: its columns by name, and what all rows say of each."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import jax

from amagold.data._fields import ALONE, ColumnMoments, RowView
from amagold.data._joined import Joined
from amagold.data._memory_mapped import MemoryMapped
from amagold.data._on_host import OnHost
from amagold.data._protocol import Data
from amagold.data._spread import Spread
from amagold.data._viewed import Viewed


class ColumnOnDisk(NamedTuple):
    """One column, or several beside each other under one name."""

    name: str
    shape: tuple[int, ...]  # of one row's value
    moments: ColumnMoments
    is_coded: bool  # whether its numbers stand for levels


@dataclass(frozen=True)
class ChosenColumns:
    """Some columns of rows that are dictionaries."""

    names: tuple[str, ...]

    def __call__(self, rows: Any) -> Any:
        return {name: rows[name] for name in self.names}


def columns_on_disk(data: Data) -> dict[str, ColumnOnDisk] | None:
    """The columns that rows have, in their order; None where the data have no names, or nothing is
    known of all rows.
    """
    view = data.view if isinstance(data, Viewed) else None
    if isinstance(view, ChosenColumns) and isinstance(data, Viewed):
        all_columns = columns_on_disk(data.data)
        return None if all_columns is None else {name: all_columns[name] for name in view.names}
    stored = data.data if isinstance(data, Viewed) else data
    if not isinstance(stored, (Joined, MemoryMapped, OnHost, Spread)) or stored.moments is None:
        return None
    if isinstance(view, RowView):
        shapes = {field.name: field.shape for field in view.fields}
        shown = list(shapes) if view.columns is None else list(view.columns)
        coded = view.coded
    elif view is None and isinstance(stored.example, dict):
        shapes = {name: leaf.shape for name, leaf in stored.example.items()}
        shown, coded = list(shapes), ()
    else:
        return None
    if ALONE in shapes:
        return None
    found, start = {}, 0
    for name in shapes if isinstance(view, RowView) else sorted(shapes):
        width = jax.ShapeDtypeStruct(shapes[name], "float32").size
        moments = stored.moments.of_words(start, width)
        found[name] = ColumnOnDisk(name, shapes[name], moments, name in coded)
        start += width
    return {name: found[name] for name in shown}
