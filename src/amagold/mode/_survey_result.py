"""What searches for modes found, and how much of the mass each mode may hold."""

from typing import NamedTuple

import numpy as np

from amagold.core import trees
from amagold.mode._mode_search import Mode
from amagold.mode._regions import Region

APART = 0.04  # squared distance per parameter, in posterior variances, from which on modes are two
NEGLIGIBLE = 1e-3  # of the mass: what holds less gets no chain


class Survey(NamedTuple):
    """What searches from far apart found."""

    mode: Mode  # the one with most mass
    shares: list[float]  # of the mass that was found, by mode, the largest first
    # where chains may start: modes and other places with mass, the most important first
    regions: list[Region]
    is_explained: bool  # whether the Gaussians at the modes account for the mass that was found
    num_searches: int

    @property
    def has_one_region(self) -> bool:
        """Whether one mode holds nearly all of the mass, as far as can be told."""
        return (
            self.mode.is_converged
            and self.is_explained
            and sum(share >= NEGLIGIBLE for share in self.shares) <= 1
        )


def weighed(mode: Mode, modes: list[Region], log_masses: list[float], num_searches: int) -> Survey:
    """The survey of these modes alone, by the mass of each."""
    if not modes:
        return Survey(mode, [], [], True, num_searches)
    by_mass = sorted(zip(modes, log_masses, strict=True), key=lambda pair: -pair[1])
    shares = np.exp(np.array([log_mass - by_mass[0][1] for _, log_mass in by_mass]))
    shares /= shares.sum()
    weighty = [
        region for (region, _), share in zip(by_mass, shares, strict=True) if share >= NEGLIGIBLE
    ]
    first = by_mass[0][0]
    best = Mode(trees.as_position(first.position), True, mode.num_iterations, first.of_data)
    return Survey(best, [float(share) for share in shares], weighty, True, num_searches)
