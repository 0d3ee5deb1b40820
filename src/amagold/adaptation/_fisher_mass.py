"""A mass from draws and the gradients there (Seyboldt, Carlson and Carpenter, 2026: the least
Fisher divergence to a Gaussian).

Of a Gaussian with covariance S the gradients have the covariance S^-1 C S^-1 where the draws have
C, whatever C is: draws of a chain that has hardly moved tell S, and few more than there are
parameters tell it to the last digit. Draws alone tell it to sqrt(d / n).
"""

import jax
import numpy as np

from amagold.adaptation._moments import Moments
from amagold.core.shapes import HostMatrix, HostVector
from amagold.trajectory._mass_matrix import DenseMass, DiagonalMass, Mass

# draws that the identity counts as, once each parameter is in units of its own scale: directions
# that the draws do not span keep it, so that few draws give a low-rank change of a diagonal
PRIOR_DRAWS = 1.0
FURTHEST = 1e3  # times the scales before, that new ones may be larger or smaller by


def fisher_mass(draws: Moments, slopes: Moments, earlier: Mass) -> Mass:
    """The mass in the form of the earlier one; the earlier one where the draws cannot tell."""
    count = float(draws.num_draws)
    if count < 2:
        return earlier
    covariance, of_slopes = (
        np.asarray(moments.squares, np.float64) / (count - 1.0) for moments in (draws, slopes)
    )
    before = _scales(earlier)
    scales = _balanced(_variances(covariance), _variances(of_slopes), before)
    if isinstance(earlier, DiagonalMass):
        return DiagonalMass(jax.device_put(scales.astype(np.float32)))
    assert isinstance(earlier, DenseMass)
    if not (np.all(np.isfinite(covariance)) and np.all(np.isfinite(of_slopes))):
        return earlier
    keep = count / (count + PRIOR_DRAWS)
    rest = (1.0 - keep) * np.eye(len(scales))
    whitened = keep * covariance / np.outer(scales, scales) + rest
    steep = keep * of_slopes * np.outer(scales, scales) + rest
    try:
        root = scales[:, None] * geometric_mean(whitened, steep)
        factor = np.linalg.inv(root).T
    except np.linalg.LinAlgError:
        return earlier
    if not (np.all(np.isfinite(root)) and np.all(np.isfinite(factor))):
        return earlier
    # M^-1 = R R^T = W^T W with W = R^T, whose inverse the mass keeps too
    return DenseMass(*(jax.device_put(part.astype(np.float32)) for part in (root.T, factor)))


def geometric_mean(covariance: HostMatrix, of_slopes: HostMatrix) -> HostMatrix:
    """R with S = R R^T and S G S = C: for covariances C of draws and G of gradients."""
    # with G = Q Q^T: S = Q^-T (Q^T C Q)^(1/2) Q^-1
    lower = np.linalg.cholesky(of_slopes)
    values, axes = np.linalg.eigh(lower.T @ covariance @ lower)
    if values.min(initial=1.0) <= 0.0:
        raise np.linalg.LinAlgError
    return np.linalg.solve(lower.T, axes * values**0.25)


def _balanced(variances: HostVector, of_slopes: HostVector, before: HostVector) -> HostVector:
    """sqrt(sd of draws / sd of gradients), the best scale of each parameter alone."""
    with np.errstate(divide="ignore", invalid="ignore"):
        found = (variances / of_slopes) ** 0.25
    usable = np.isfinite(found) & (found > 0.0)
    return np.clip(np.where(usable, found, before), before / FURTHEST, before * FURTHEST)


def _variances(covariance: np.ndarray) -> HostVector:
    return np.diagonal(covariance).copy() if covariance.ndim == 2 else covariance


def _scales(mass: Mass) -> HostVector:
    """The standard deviations that the mass stands for."""
    if isinstance(mass, DenseMass):
        return np.sqrt(np.sum(np.asarray(mass.inverse_factor, np.float64) ** 2, axis=0))
    assert isinstance(mass, DiagonalMass)
    return np.asarray(mass.inverse_scale, np.float64)
