"""Eigenvalues with how many of each there are."""

from typing import NamedTuple

import numpy as np

from amagold.core.array_types import Float64

NUM_GROUPS = 32

PerEigenvalue = Float64[np.ndarray, " eigenvalues"]


class Spectrum(NamedTuple):
    """The eigenvalues of a matrix, or representatives of them; the counts sum to its dimension."""

    eigenvalues: PerEigenvalue
    counts: PerEigenvalue

    def scaled(self, factor: float) -> "Spectrum":
        return Spectrum(self.eigenvalues * factor, self.counts)

    def at_least(self, floor: float) -> "Spectrum":
        return Spectrum(np.maximum(self.eigenvalues, floor), self.counts)


def grouped(
    spectrum: Spectrum, weights: PerEigenvalue | None
) -> tuple[Spectrum, Float64[np.ndarray, " groups"] | None]:
    """A spectrum with near eigenvalues put together, and weights that go with them summed: at most
    32 groups, the ends exact.
    """
    logs = np.log(spectrum.eigenvalues)
    low, high = logs.min(), logs.max()
    width = max(high - low, 1e-3) / (NUM_GROUPS - 2)
    # the two ends are groups of their own, because the fastest and the slowest direction decide
    group = np.where(
        logs == low,
        0,
        np.where(
            logs == high,
            NUM_GROUPS - 1,
            1 + np.minimum((logs - low) // width, NUM_GROUPS - 3).astype(int),
        ),
    )
    members = [np.flatnonzero(group == index) for index in np.unique(group)]
    counts = np.array([spectrum.counts[each].sum() for each in members])
    means = [
        np.average(logs[each], weights=np.maximum(spectrum.counts[each], 1e-12)) for each in members
    ]
    together = Spectrum(np.exp(means), counts)
    return together, None if weights is None else np.array(
        [weights[each].sum() for each in members]
    )


def ritz_spectrum(
    diagonal: Float64[np.ndarray, " steps"],
    off_diagonal: Float64[np.ndarray, " steps"],
    dimension: int,
) -> Spectrum:
    """The spectrum from Lanczos' recurrence with a random start: Gauss quadrature of the density of
    eigenvalues.
    """
    broken = np.flatnonzero(
        ~(
            np.isfinite(diagonal)
            & np.isfinite(off_diagonal)
            & (off_diagonal > 1e-6 * np.abs(diagonal).max())
        )
    )
    stop = broken[0] + 1 if broken.size else len(diagonal)
    diagonal, off_diagonal = np.nan_to_num(diagonal[:stop], nan=1.0), off_diagonal[: stop - 1]
    eigenvalues, vectors = np.linalg.eigh(
        np.diag(diagonal) + np.diag(off_diagonal, 1) + np.diag(off_diagonal, -1)
    )
    return Spectrum(eigenvalues, dimension * vectors[0] ** 2)
