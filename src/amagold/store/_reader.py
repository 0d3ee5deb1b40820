"""The arrays of a store for xarray, read from disk when they are looked at.

Only chunks that pass their checks are decoded, and nothing in the metadata is applied to values.
"""

from typing import Any

import numpy as np
import pandas
import xarray
from xarray.backends import BackendArray, BackendEntrypoint
from xarray.core import indexing

from amagold.store._names import dimensions
from amagold.store._zarr_store import ZarrStore

Wanted = range | np.ndarray  # draws, by number


class StoredArray(BackendArray):
    """One variable of a group, with as many draws as are asked for."""

    def __init__(self, store: ZarrStore, group: str, name: str, num_draws: int) -> None:
        self._store, self._group, self._name = store, group, name
        found = store.group(group)
        self._column = found.columns[name]
        self.shape = (found.num_chains, num_draws, *self._column.shape)
        self.dtype = np.dtype(self._column.dtype)

    def __getitem__(self, key: Any) -> Any:
        outer = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, outer, self._read)

    def _read(self, key: tuple[Any, ...]) -> np.ndarray:
        """Axis by axis: a number takes its axis away, a slice or an array of numbers keeps it."""
        lone = tuple(axis for axis, part in enumerate(key) if isinstance(part, (int, np.integer)))
        parts = [np.asarray([part]) if axis in lone else part for axis, part in enumerate(key)]
        draws = _wanted(parts[1], self.shape[1])
        extents = [
            len(_wanted(part, extent)) for part, extent in zip(parts, self.shape, strict=True)
        ]
        values = np.full(extents, self._column.fill, self.dtype)
        if values.size and not self._column.is_constant:
            self._fill(values, draws, parts)
        return values.squeeze(lone)

    def _fill(self, values: np.ndarray, draws: Wanted, parts: list[Any]) -> None:
        step = self._column.in_chunk
        low, high = (
            (draws.min(), draws.max()) if isinstance(draws, np.ndarray) else (draws[0], draws[-1])
        )
        for number in range(int(low) // step, int(high) // step + 1):
            places, within = _within(draws, number * step, (number + 1) * step)
            if not within.size:
                continue
            part = self._store.read_chunk(self._group, self._name, number)
            for axis, wanted in enumerate([parts[0], within, *parts[2:]]):
                part = part[(*[slice(None)] * axis, wanted)]
            values[:, places] = part


def _within(draws: Wanted, start: int, stop: int) -> tuple[Any, np.ndarray]:
    """The places in `draws` of those between two numbers, and where they are after the first."""
    if isinstance(draws, np.ndarray):
        places = np.flatnonzero((draws >= start) & (draws < stop))
        return places, draws[places] - start
    # a range is cut without looking at every number: how many come before each edge?
    before = [-(-(edge - draws.start) // draws.step) for edge in (start, stop)]
    first, last = (max(0, min(len(draws), count)) for count in before)
    return slice(first, last), np.asarray(draws[first:last]) - start


def _wanted(part: Any, length: int) -> Wanted:
    """What a slice or an array of numbers asks for; a range only ever counts upwards."""
    if not isinstance(part, slice):
        return np.asarray(part)
    wanted = range(length)[part]
    return wanted if wanted.step > 0 else np.asarray(wanted)


class Opener(BackendEntrypoint):
    """How xarray opens a group of a store."""

    description = "groups of runs stored by amagold"

    def open_dataset(
        self,
        filename_or_obj: Any,
        *,
        drop_variables: Any = None,
        variables: Any = None,
    ) -> xarray.Dataset:
        """The variables as they are: nothing in their metadata is applied to their values."""
        return xarray.Dataset(variables)


def open_group(store: ZarrStore, group: str, num_draws: int | None = None) -> xarray.Dataset:
    """A group as a dataset: all committed draws, or the first of them."""
    length = store.length(group) if num_draws is None else min(num_draws, store.length(group))
    variables = {}
    for name, column in store.group(group).columns.items():
        array = indexing.LazilyIndexedArray(StoredArray(store, group, name, length))
        variables[name] = xarray.Variable(dimensions(name, len(column.shape)), array)
    dataset = xarray.open_dataset(str(store.path), engine=Opener, variables=variables)
    # axes are numbered from 0, which a range says without an array of all the numbers
    numbers = {name: (name, pandas.RangeIndex(size)) for name, size in dataset.sizes.items()}
    return dataset.assign_coords(numbers)
