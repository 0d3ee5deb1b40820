"""Where the rows of every group are."""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.core import trees
from amagold.core.array_types import Int32
from amagold.core.scratch import is_large, scratch

CHUNK = 2**20  # rows that are sorted at a time
SPACE = 16.0  # bytes a row: with more in memory at once there is no room for it


@trees.record()
class GroupRows:
    """Rows sorted by their group."""

    order: Int32[Array, " examples"]
    starts: Int32[Array, " groups"]
    counts: Int32[Array, " groups"]

    def row(self, groups: Int32[Array, " rows"], places: Int32[Array, " rows"]) -> Array:
        """The rows at these places within groups."""
        return self.order[self.starts[groups] + places]


def sorted_by_level(levels: np.ndarray, num_levels: int) -> tuple[np.ndarray, np.ndarray]:
    """The numbers of rows by their level, in order within each, and how many every level has: a
    counting sort, a part at a time.
    """
    counts = np.bincount(levels, minlength=num_levels)
    free = np.cumsum(counts) - counts
    make = scratch if is_large(SPACE * len(levels)) else np.empty
    order = make((len(levels),), np.int32)
    narrow = np.int16 if num_levels < 2**15 else np.int32  # of 16 bits they are not compared
    for start in range(0, len(levels), CHUNK):
        part = levels[start : start + CHUNK].astype(narrow)
        by_level = np.argsort(part, kind="stable")
        own = np.bincount(part, minlength=num_levels)
        within = np.arange(len(part)) - np.repeat(np.cumsum(own) - own, own)
        order[free[part[by_level]] + within] = start + by_level
        free += own
    return order, counts


def group_rows(levels: np.ndarray, num_groups: int) -> GroupRows:
    order, counts = sorted_by_level(levels, num_groups)
    starts = np.cumsum(counts) - counts
    return GroupRows(
        jax.device_put(order), jnp.asarray(starts, jnp.int32), jnp.asarray(counts, jnp.int32)
    )
