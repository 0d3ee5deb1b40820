"""Examples in files that are mapped into memory: the system brings the pages that are read, and
takes them back when it needs the room.
"""

import hashlib
import mmap
from pathlib import Path

import jax
import numpy as np
from jax.typing import ArrayLike

from amagold.core import trees
from amagold.data._fields import ColumnMoments
from amagold.data._in_memory import InMemory


@trees.record()
class MemoryMapped(InMemory):
    """Arrays of JAX that are the files' own pages, where the device is the host."""

    # the same pages mapped again, for single rows: the system then reads nothing around them
    scattered: trees.PyTree
    # of all rows, from when they were first read; traced like them, so that data of one form share
    # their programs
    seal: jax.Array
    # `ColumnMoments` of all words as bytes, for the same reason; empty where they are not known
    summary: jax.Array

    @property
    def moments(self) -> ColumnMoments | None:
        """Of every word, arrays of several names in the order of these."""
        return ColumnMoments.from_bytes(self.num_examples, np.asarray(self.summary).tobytes())

    def rows(self, numbers: ArrayLike) -> trees.PyTree:
        return InMemory(self.scattered).rows(numbers)

    def fingerprint(self) -> str:
        return np.asarray(self.seal).tobytes().hex()


def mapped(
    arrays: trees.PyTree, scattered: trees.PyTree, seal: str, moments: ColumnMoments | None
) -> MemoryMapped:
    """Memory-mapped NumPy arrays as JAX's, without a copy on the host; `scattered` are the same
    files by `map_file(..., scattered=True)`.
    """
    digest = np.frombuffer(hashlib.sha256(seal.encode()).digest(), np.uint8)
    summary = np.frombuffer(b"" if moments is None else moments.as_bytes(), np.uint8)
    # `device_put` takes aligned memory as it is, where `jnp.asarray` would copy
    return MemoryMapped(*jax.tree.map(jax.device_put, (arrays, scattered, digest, summary)))


def map_file(path: Path, *, scattered: bool = False) -> np.ndarray:
    """An `.npy` file mapped into memory, to be read in order or, if `scattered`, here and there."""
    array = np.load(path, mmap_mode="r", allow_pickle=False)
    pages = getattr(array, "_mmap", None)
    advice = getattr(mmap, "MADV_RANDOM" if scattered else "MADV_SEQUENTIAL", None)
    if pages is not None and advice is not None:
        pages.madvise(advice)
    return array
