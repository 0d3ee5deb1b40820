"""Whether chains have converged, by their worst coordinate.

The figures are ArviZ's, with one difference: ArviZ counts a coordinate that never moved as perfectly sampled; here a chain that
stands still, and a draw that is not finite, are the worst there is.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from amagold.arviz import arviz_stats

if TYPE_CHECKING:
    import xarray

COLUMNS_AT_ONCE = 512  # coordinates that are looked at together
FEWEST_DRAWS = 4  # ArviZ's figures need as many


def minimum_ess(posterior: "xarray.Dataset") -> float:
    """The smallest bulk effective sample size of all coordinates; 1 if a chain never moved in one of them.

    Args:
      posterior: variables with dimensions (chain, draw, ...).
    """
    ess = arviz_stats().ess

    smallest = math.inf
    for block in _blocks(posterior):
        if not _moves(block):
            return 1.0
        smallest = min(smallest, float(np.min(ess(block, method="bulk", chain_axis=0, draw_axis=1))))
    return smallest


def maximum_r_hat(posterior: "xarray.Dataset") -> float:
    """The largest rank-normalised split R-hat of all coordinates; infinite if a chain never moved in one of them.

    A lone chain is compared half against half.

    Args:
      posterior: variables with dimensions (chain, draw, ...).
    """
    rhat = arviz_stats().rhat

    largest = -math.inf
    for block in _blocks(posterior):
        if not _moves(block):
            return math.inf
        if block.shape[0] == 1:
            half = block.shape[1] // 2
            block = np.concatenate([block[:, :half], block[:, half : 2 * half]])
            if half < FEWEST_DRAWS or not _moves(block):
                return math.inf
        largest = max(largest, float(np.max(rhat(block, method="rank", chain_axis=0, draw_axis=1))))
    return largest


def _moves(block: np.ndarray) -> bool:
    """Whether every chain of every coordinate is finite and takes more than one value."""
    return bool(np.isfinite(block).all() and np.all(np.ptp(block, axis=1) > 0.0))


def _blocks(posterior: "xarray.Dataset") -> Iterator[np.ndarray]:
    """Arrays of (chain, draw, coordinate), a variable and some coordinates at a time."""
    if not len(posterior.data_vars):
        raise ValueError("posterior must hold at least one variable, got none; pass the posterior group of a run")
    for name, variable in posterior.data_vars.items():
        if not {"chain", "draw"} <= set(variable.dims):
            raise ValueError(f"posterior must have dimensions (chain, draw, ...), but {name!r} has {tuple(variable.dims)}; rename them")
        if variable.sizes["draw"] < FEWEST_DRAWS:
            raise ValueError(f"posterior must hold at least {FEWEST_DRAWS} draws per chain, got {variable.sizes['draw']}; run longer")
        values = variable.transpose("chain", "draw", ...).to_numpy()
        values = values.reshape(*values.shape[:2], -1)
        for start in range(0, values.shape[2], COLUMNS_AT_ONCE):
            yield values[:, :, start : start + COLUMNS_AT_ONCE].astype(np.float64)
