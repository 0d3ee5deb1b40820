"""True values from formulas and grids, in float64."""

from collections.abc import Callable
from typing import Any

import numpy as np
from record import Draws, Truth
from scipy import stats
from scipy.special import logsumexp

TAIL = 0.05


def of_distribution(
    name: str,
    of: Callable[[Draws], np.ndarray],
    law: Any,
    *,
    moments: bool = True,
    tail: float = TAIL,
) -> Truth:
    """From a frozen distribution of scipy."""
    mean, variance = (float(law.mean()), float(law.var())) if moments else (None, None)
    return Truth(
        name, of, mean, variance, (float(law.ppf(tail)), tail), (float(law.isf(tail)), tail)
    )


def normal(name: str, of: Callable[[Draws], np.ndarray], mean: float, variance: float) -> Truth:
    return of_distribution(name, of, stats.norm(mean, variance**0.5))


def of_weights(
    name: str,
    of: Callable[[Draws], np.ndarray],
    places: np.ndarray,
    weights: np.ndarray,
    cuts: tuple[float, float] | None = None,
) -> Truth:
    """From a marginal density on an even grid; the tails are beyond `cuts`, or where a share of
    TAIL is left.
    """
    weights = weights / weights.sum()
    mean = float(weights @ places)
    variance = float(weights @ (places - mean) ** 2)
    # a cut halfway between two places, so that each place counts on one side
    total, half = np.cumsum(weights), 0.5 * (places[1] - places[0])
    if cuts is None:
        cuts = tuple(
            float(places[np.searchsorted(total, share)] + half) for share in (TAIL, 1.0 - TAIL)
        )  # type: ignore[assignment]
    assert cuts is not None
    below = float(weights[places < cuts[0]].sum()), float(weights[places > cuts[1]].sum())
    return Truth(name, of, mean, variance, (cuts[0], below[0]), (cuts[1], below[1]))


def on_a_line(
    log_density: Callable[[np.ndarray], np.ndarray], low: float, high: float, num: int = 200_001
) -> tuple[np.ndarray, np.ndarray]:
    """Places and weights; the density must have died out at both ends."""
    places = np.linspace(low, high, num)
    logs = log_density(places)
    weights = np.exp(logs - logsumexp(logs))
    check_ends(weights)
    return places, weights


def on_a_plane(
    log_density: Callable[[np.ndarray, np.ndarray], np.ndarray],
    first: tuple[float, float],
    second: tuple[float, float],
    num: int = 1201,
) -> tuple[tuple[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]:
    """Places and marginal weights of both coordinates."""
    a, b = np.linspace(*first, num), np.linspace(*second, num)
    logs = np.stack([log_density(np.full_like(b, at), b) for at in a])
    weights = np.exp(logs - logsumexp(logs))
    marginals = (a, weights.sum(axis=1)), (b, weights.sum(axis=0))
    for _, marginal in marginals:
        check_ends(marginal)
    return marginals


def check_ends(weights: np.ndarray) -> None:
    ends = max(weights[0], weights[-1]) / weights.max()
    if not ends < 1e-7:
        raise AssertionError(
            f"the grid must reach where the density has died out, got {ends:.1e} of its peak at "
            "an end; widen it"
        )
