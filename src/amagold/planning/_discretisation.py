"""What the leapfrog's finite step costs in acceptance, on a Gaussian with the target's
curvature.
"""

import math

import numpy as np

from amagold.mode._spectrum import Spectrum

_erfc = np.vectorize(math.erfc, [float])  # scipy's is slow to load


def turning(spectrum: Spectrum, step_sizes: np.ndarray) -> np.ndarray:
    """The angle that each eigenvalue's oscillation turns per step, step sizes by eigenvalues; NaN
    where the step is unstable.
    """
    # cos angle = 1 - epsilon^2 lambda / 2
    cosine = 1.0 - 0.5 * np.multiply.outer(np.square(step_sizes), spectrum.eigenvalues)
    return np.arccos(np.where(cosine > -1.0, cosine, np.nan))


def discretisation_variance(
    spectrum: Spectrum, step_sizes: np.ndarray, num_steps: int
) -> np.ndarray:
    """s^2, the variance of log a, for T full-batch leapfrog steps from equilibrium, for each step
    size; infinite where unstable.

    In units q = sqrt(lambda) x, both q and p are N(0, 1), and T drift-kick-drift steps are the
    matrix
        R = [[c, k s], [-s / k, c]],  c = cos(T angle), s = sin(T angle), k^2 = 1 - epsilon^2 lambda
        / 4,
    so that -log a = (q*^2 + p*^2 - q^2 - p^2) / 2 has mean tr(R^T R - I) / 2 = s^2 (k - 1 / k)^2 /
    2. A sum over many directions is normal with twice that for its variance; over few it has a
    heavier tail, which costs no acceptance, so the mean is what counts.

    Args:
      spectrum: of the Hessian in units of the mass.
      step_sizes: epsilon, a vector of them.
      num_steps: T.
    """
    step_sizes = np.atleast_1d(np.asarray(step_sizes, np.float64))
    # (k - 1 / k)^2 = (epsilon^2 lambda / 4)^2 / (1 - epsilon^2 lambda / 4)
    quarter = 0.25 * np.multiply.outer(step_sizes**2, spectrum.eigenvalues)
    with np.errstate(divide="ignore", invalid="ignore"):
        variance = (
            np.sin(num_steps * turning(spectrum, step_sizes)) ** 2 * quarter**2 / (1.0 - quarter)
        )
    return np.where(np.isfinite(variance), variance, np.inf) @ spectrum.counts


def acceptance_from(variance: np.ndarray | float) -> np.ndarray:
    """E min(1, a) = 2 Phi(-s / 2) for log a ~ N(-s^2 / 2, s^2)."""
    # a sum that cancels may round to less than zero
    return _erfc(np.sqrt(np.maximum(variance, 0.0)) / (2.0 * np.sqrt(2.0)))
