"""Examples that lie beside each other, for walks that the host leads."""

from typing import Any

import jax.numpy as jnp

from amagold.core import trees
from amagold.data._in_memory import InMemory
from amagold.data._protocol import Data
from amagold.data._viewed import Viewed


def neighbours(data: Data, start: Any, length: int) -> trees.PyTree:
    """So many examples from this number on; files are read in their order."""
    if isinstance(data, Viewed):
        return data.view(neighbours(data.data, start, length))
    if isinstance(data, InMemory):
        return data.rows_from(start, length)
    return data.rows(jnp.asarray(start, jnp.int32) + jnp.arange(length, dtype=jnp.int32))
