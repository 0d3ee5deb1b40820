"""Examples in files that are mapped into memory: the system brings the pages that are read, and
takes them back when it needs the room.
"""

import hashlib

import jax
import numpy as np

from amagold.core import trees
from amagold.data._in_memory import InMemory


@trees.record()
class MemoryMapped(InMemory):
    """Arrays of JAX that are the files' own pages, where the device is the host."""

    # of all rows, from when they were first read; traced like them, so that data of one form share
    # their programs
    seal: jax.Array

    def fingerprint(self) -> str:
        return np.asarray(self.seal).tobytes().hex()


def mapped(arrays: trees.PyTree, seal: str) -> MemoryMapped:
    """Memory-mapped NumPy arrays as JAX's, without a copy on the host."""
    numbers = np.frombuffer(hashlib.sha256(seal.encode()).digest(), np.uint8)
    # `device_put` takes aligned memory as it is, where `jnp.asarray` would copy
    return MemoryMapped(jax.tree.map(jax.device_put, arrays), jax.device_put(numbers))
