"""The double well of the paper's Figure 1: one number, two wells of unequal depth, all moments
known by quadrature.
"""

from typing import Any, NamedTuple

import numpy as np

from amagold.target import Density

DOUBLE_WELL_ROOTS = (-4.0, -1.0, 1.0, 3.0)
DOUBLE_WELL_SCALE = 14.0
DOUBLE_WELL_OFFSET = 0.5
DOUBLE_WELL_BOUNDS = (-6.0, 5.0)  # all but 1e-16 of the mass


class DoubleWellMoments(NamedTuple):
    """What draws should reproduce."""

    mean: float
    variance: float


def energy(theta: Any) -> Any:
    """U(theta) = (theta + 4)(theta + 1)(theta - 1)(theta - 3) / 14 + 0.5, for a number or an array
    of them.
    """
    product = 1.0
    for root in DOUBLE_WELL_ROOTS:
        product = product * (theta - root)
    return product / DOUBLE_WELL_SCALE + DOUBLE_WELL_OFFSET


def log_density(theta: Any) -> Any:
    """log pi(theta) = -U(theta), up to a constant."""
    return -energy(theta)


def double_well() -> Density:
    """The double well as a target; a position is one number."""
    return Density(log_density, init=0.0)


def double_well_density(theta: np.ndarray) -> np.ndarray:
    """pi(theta), normalised by quadrature."""
    grid, weights = _quadrature()
    return np.exp(-energy(np.asarray(theta, np.float64))) / np.sum(weights * np.exp(-energy(grid)))


def double_well_moments() -> DoubleWellMoments:
    """Mean and variance of the double well by quadrature."""
    grid, weights = _quadrature()
    mass = weights * double_well_density(grid)
    mean = float(np.sum(mass * grid))
    return DoubleWellMoments(mean, float(np.sum(mass * (grid - mean) ** 2)))


def _quadrature() -> tuple[np.ndarray, np.ndarray]:
    """Points and weights of the trapezium rule, which is as good as exact where the density has
    died away at both ends.
    """
    low, high = DOUBLE_WELL_BOUNDS
    grid, spacing = np.linspace(low - 2.0, high + 2.0, 20_001, retstep=True)
    return grid, np.full_like(grid, spacing)
