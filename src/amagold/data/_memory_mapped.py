"""Examples in files that are mapped into memory: the system brings the pages that are read, and
takes them back when it needs the room.
"""

import hashlib

import jax
import numpy as np

from amagold.core import trees
from amagold.data._in_memory import InMemory

NUM_RUNS = 1024  # of neighbours, that a few examples which stand for all are taken from


@trees.record()
class MemoryMapped(InMemory):
    """Arrays of JAX that are the files' own pages, where the device is the host."""

    # of all rows, from when they were first read; traced like them, so that data of one form share
    # their programs
    seal: jax.Array

    def some(self, count: int) -> InMemory:
        # in runs of neighbours, because a page is brought whole; sorted data have them all over
        num_runs = max(1, min(NUM_RUNS, count))
        length = max(1, count // num_runs)
        starts = np.linspace(0, max(0, self.num_examples - length), num_runs).astype(np.int64)
        if length * num_runs >= self.num_examples:
            return super().some(count)

        def copied(leaf: jax.Array) -> jax.Array:
            on_host = np.asarray(leaf)
            return jax.device_put(
                np.concatenate([on_host[start : start + length] for start in starts])
            )

        return InMemory(jax.tree.map(copied, self.arrays))

    def fingerprint(self) -> str:
        return np.asarray(self.seal).tobytes().hex()


def mapped(arrays: trees.PyTree, seal: str) -> MemoryMapped:
    """Memory-mapped NumPy arrays as JAX's, without a copy on the host."""
    numbers = np.frombuffer(hashlib.sha256(seal.encode()).digest(), np.uint8)
    # `device_put` takes aligned memory as it is, where `jnp.asarray` would copy
    return MemoryMapped(jax.tree.map(jax.device_put, arrays), jax.device_put(numbers))
