"""Histograms of streamed draws in one or two dimensions, and their symmetric KL divergence from a
known density.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from amagold.diagnose._symmetric_kl import symmetric_kl_of_counts

LEAST_MASS = 1e-4  # cells of less true mass are joined with the outside
POINTS = 8  # of quadrature, per cell and axis


class Cells(NamedTuple):
    """Equal cells over a box, first axis slowest, then one for everything outside of it."""

    low: np.ndarray
    high: np.ndarray
    shape: tuple[int, ...]
    masses: np.ndarray  # of every cell under the true density

    @property
    def is_kept(self) -> np.ndarray:
        """Which cells the divergence tells apart; all others count as one, so that nearly empty
        ones do not decide it.
        """
        return np.append(self.masses[:-1] >= LEAST_MASS, False)

    def count_draws(self, draws: np.ndarray) -> np.ndarray:
        """How many draws fall into each cell, chain by chain: from axes (draw, chain, ...) to
        (chain, cell).
        """
        num_draws, num_chains = draws.shape[:2]
        width = (self.high - self.low) / self.shape
        place = np.floor((draws.reshape(num_draws, num_chains, len(self.shape)) - self.low) / width)
        # what is not a number is outside
        inside = np.all((place >= 0) & (place < self.shape), axis=-1)
        number = np.ravel_multi_index(
            tuple(np.moveaxis(np.where(inside[..., None], place, 0).astype(np.intp), -1, 0)),
            self.shape,
        )
        size = len(self.masses)
        number = np.where(inside, number, size - 1) + size * np.arange(num_chains)
        return np.bincount(number.ravel(), minlength=num_chains * size).reshape(num_chains, size)

    def symmetric_kl(self, counts: np.ndarray) -> np.ndarray:
        """Of counts with the cells on the last axis."""
        kept = self.is_kept

        def join(values: np.ndarray) -> np.ndarray:
            others = values[..., ~kept].sum(axis=-1, keepdims=True)
            return np.concatenate([values[..., kept], others], axis=-1)

        return symmetric_kl_of_counts(join(counts), join(self.masses))

    def density(self, values: np.ndarray) -> np.ndarray:
        """Counts or masses as a density on the box, in its shape."""
        return (
            values[:-1].reshape(self.shape)
            / values.sum()
            / np.prod((self.high - self.low) / self.shape)
        )


def cells_of(
    log_density: Callable[[Any], Any],
    low: tuple[float, ...],
    high: tuple[float, ...],
    shape: tuple[int, ...],
) -> Cells:
    """Cells with their true masses by the midpoint rule, over the box and as much again on every
    side of it.

    In one dimension the log density gets a vector of points, in more an array with the coordinates
    on the last axis.
    """
    axes = []
    for start, end, count in zip(low, high, shape, strict=True):
        fine = (end - start) / (count * POINTS)
        axes.append(start + fine * (np.arange(-count * POINTS, 2 * count * POINTS) + 0.5))
    points = axes[0] if len(shape) == 1 else np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    value = np.exp(np.asarray(log_density(points), np.float64))
    for axis, count in enumerate(shape):
        # fold the points of a cell, on this axis
        value = value.reshape(*value.shape[:axis], 3 * count, POINTS, *value.shape[axis + 1 :]).sum(
            axis=axis + 1
        )
    inside = value[tuple(slice(count, 2 * count) for count in shape)].ravel()
    total = value.sum()
    masses = np.append(inside, total - inside.sum()) / total
    return Cells(np.array(low), np.array(high), shape, masses)
