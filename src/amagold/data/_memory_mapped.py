"""Examples in files that are mapped into memory: the system brings the pages that are read, and
takes them back when it needs the room.
"""

import jax
import numpy as np

from amagold.core import trees
from amagold.data._in_memory import InMemory


@trees.record(static=("seal",))
class MemoryMapped(InMemory):
    """Arrays of JAX that are the files' own pages, where the device is the host."""

    seal: str = ""  # the checksum of all rows, known from when they were first read

    def fingerprint(self) -> str:
        return self.seal


def mapped(arrays: trees.PyTree, seal: str) -> MemoryMapped:
    """Memory-mapped NumPy arrays as JAX's, without a copy on the host."""
    # `device_put` takes aligned memory as it is, where `jnp.asarray` would copy
    return MemoryMapped(jax.tree.map(jax.device_put, arrays), seal)


def is_alias(array: jax.Array, memory: np.ndarray) -> bool:
    """Whether an array of JAX is this memory and not a copy of it."""
    return array.unsafe_buffer_pointer() == memory.ctypes.data
