"""Whether chains have converged, by their worst coordinate.

The figures are ArviZ's (`_rank_statistics.py`), with one difference: ArviZ counts a coordinate that
never moved as perfectly sampled; here a chain that stands still, and a draw that is not finite, are
the worst there is.
"""

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from amagold.diagnose._rank_statistics import (
    bulk_effective_draws,
    mean_effective_draws,
    r_hat,
    tail_effective_draws,
)

if TYPE_CHECKING:
    import xarray

MOST_CHAINS = 16  # that are looked at one by one
COLUMNS_AT_ONCE = 512  # coordinates that are looked at together
FEWEST_DRAWS = 4  # ArviZ's figures need as many


def minimum_ess(posterior: "xarray.Dataset") -> float:
    """The smallest bulk effective sample size of all coordinates; 1 if a chain never moved in one
    of them.

    Args:
      posterior: variables with dimensions (chain, draw, ...).
    """
    smallest = math.inf
    for block in _blocks(posterior):
        if not _moves(block):
            return 1.0
        smallest = min(smallest, float(np.min(bulk_effective_draws(block))))
    return smallest


def minimum_tail_ess(posterior: "xarray.Dataset") -> float:
    """The smallest effective sample size of the 5 % and 95 % quantiles of all coordinates; 1 if a
    chain never moved.

    Args:
      posterior: variables with dimensions (chain, draw, ...).
    """
    blocks = list(_blocks(posterior))
    if not all(_moves(block) for block in blocks):
        return 1.0
    return min(float(np.min(tail_effective_draws(block))) for block in blocks)


def smallest_ess_within(posterior: "xarray.Dataset") -> float:
    """The effective draws of one chain by itself, at best over chains, of the coordinate where that
    is worst.

    Chains that disagree and have many move well within separate modes; those that have few hardly
    move at all.

    Args:
      posterior: variables with dimensions (chain, draw, ...).
    """
    smallest = math.inf
    for block in _blocks(posterior):
        if not _moves(block):
            return 1.0
        by_chain = [mean_effective_draws(chain[None]) for chain in block[:MOST_CHAINS]]
        smallest = min(smallest, float(np.min(np.max(by_chain, axis=0))))
    return smallest


def energy_mixing(energy: np.ndarray) -> float:
    """Of the worst chain, the mean squared change of the energy from draw to draw over its
    variance: 2 for independent draws.

    Next to zero where a chain wanders through the energies slowly, as it does through heavy tails
    and narrow funnels (Betancourt's energy fraction, taken of U).

    Args:
      energy: U of every draw, (chain, draw).
    """
    values = np.asarray(energy, np.float64)
    spread = np.var(values, axis=1)
    changes = np.mean(np.diff(values, axis=1) ** 2, axis=1)
    return float(np.min(changes[spread > 0.0] / spread[spread > 0.0], initial=2.0))


def maximum_r_hat(posterior: "xarray.Dataset") -> float:
    """The largest rank-normalised split R-hat of all coordinates; infinite if a chain never moved
    in one of them.

    A lone chain is compared half against half.

    Args:
      posterior: variables with dimensions (chain, draw, ...).
    """
    largest = -math.inf
    for block in _blocks(posterior):
        if not _moves(block):
            return math.inf
        if block.shape[0] == 1:
            half = block.shape[1] // 2
            block = np.concatenate([block[:, :half], block[:, half : 2 * half]])
            if half < FEWEST_DRAWS or not _moves(block):
                return math.inf
        largest = max(largest, float(np.max(r_hat(block))))
    return largest


def _moves(block: np.ndarray) -> bool:
    """Whether every chain of every coordinate is finite and takes more than one value."""
    return bool(np.isfinite(block).all() and np.all(np.ptp(block, axis=1) > 0.0))


def _blocks(posterior: "xarray.Dataset") -> Iterator[np.ndarray]:
    """Arrays of (chain, draw, coordinate), a variable and some coordinates at a time."""
    if not len(posterior.data_vars):
        raise ValueError(
            "posterior must hold at least one variable, got none; pass the posterior group of a run"
        )
    for name, variable in posterior.data_vars.items():
        if not {"chain", "draw"} <= set(variable.dims):
            raise ValueError(
                f"posterior must have dimensions (chain, draw, ...), but {name!r} has "
                f"{tuple(variable.dims)}; rename them"
            )
        if variable.sizes["draw"] < FEWEST_DRAWS:
            raise ValueError(
                f"posterior must hold at least {FEWEST_DRAWS} draws per chain, got "
                f"{variable.sizes['draw']}; run longer"
            )
        values = variable.transpose("chain", "draw", ...).to_numpy()
        values = _free_entries(values)
        for start in range(0, values.shape[2], COLUMNS_AT_ONCE):
            yield values[:, :, start : start + COLUMNS_AT_ONCE].astype(np.float64)


def _free_entries(values: np.ndarray) -> np.ndarray:
    """(chain, draw, coordinate), without what is no parameter: ones on the diagonal of correlation
    matrices, and of their Cholesky factors the first of them and the zeros above it.
    """
    flat = values.reshape(*values.shape[:2], -1)
    size = values.shape[-1]
    if values.ndim < 4 or values.shape[-2] != size:
        return flat
    is_one, is_zero = (np.all(values == number, axis=(0, 1)) for number in (1.0, 0.0))
    diagonal, above = np.eye(size, dtype=bool), np.triu(np.ones((size, size), bool), 1)
    # of each matrix, should there be several
    is_factor = is_one[..., :1, :1] & is_zero[..., above].all(axis=-1)[..., None, None]
    is_whole = is_one[..., diagonal].all(axis=-1)[..., None, None]
    fixed = (is_whole & diagonal) | (is_factor & ((is_one & diagonal) | above))
    return flat[:, :, ~fixed.ravel()] if fixed.any() and not fixed.all() else flat
