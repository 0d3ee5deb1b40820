"""Data of one process, split over its devices."""

import itertools
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh

from amagold.data._in_memory import InMemory
from amagold.data._memory_mapped import MemoryMapped
from amagold.data._protocol import Data
from amagold.data._spread import Spread, spread_over
from amagold.data._viewed import Viewed

ALIGNED = 16  # rows, at whose multiples a part begins, so that JAX can take its memory as it is


def edge(num_rows: int, place: int, count: int) -> int:
    """The first row of the part at this place, of so many parts that are as even as can be."""
    if place == count:
        return num_rows
    # of few rows a part would be empty if it began at such a multiple alone
    multiple = ALIGNED if num_rows >= 2 * ALIGNED * count else 1
    return num_rows * place // count // multiple * multiple


def pieces_of(arrays: Any, count: int) -> list[Any]:
    """NumPy's arrays in so many parts."""
    num_rows = len(jax.tree.leaves(arrays)[0])
    edges = [edge(num_rows, place, count) for place in range(count + 1)]
    return [
        jax.tree.map(lambda leaf, here=here, there=there: leaf[here:there], arrays)
        for here, there in itertools.pairwise(edges)
    ]


def host_arrays(data: InMemory) -> tuple[Any, Any]:
    """The examples as NumPy's arrays, to be read in order and here and there."""
    scattered = data.scattered if isinstance(data, MemoryMapped) else data.arrays
    both = jax.tree.map(np.asarray, (data.arrays, scattered))
    return both[0], both[1]


def split_over(data: Data, mesh: Mesh, axis: str) -> Data:
    """The data, split over one axis of a mesh; on its other axes they are whole."""
    if isinstance(data, Viewed):
        return Viewed(split_over(data.data, mesh, axis), data.view)
    if isinstance(data, Spread):
        raise ValueError(
            "mesh must be None for data that several processes have parts of: these are split over "
            "all devices already"
        )
    if not isinstance(data, InMemory):
        raise ValueError(
            f"mesh cannot split data of the class {type(data).__name__}: give arrays, or "
            "amagold.data.open"
        )
    count = mesh.shape[axis]
    if data.num_examples < count:
        raise ValueError(
            f"mesh must have at most as many devices along {axis!r} as there are examples, got "
            f"{count} for {data.num_examples}"
        )
    arrays, scattered = host_arrays(data)
    parts, again = pieces_of(arrays, count), pieces_of(scattered, count)
    counts = [len(jax.tree.leaves(part)[0]) for part in parts]
    moments = data.moments if isinstance(data, MemoryMapped) else None
    own = list(zip(parts, again, strict=True))
    return spread_over(mesh, (axis,), own, counts, data.fingerprint(), moments)
