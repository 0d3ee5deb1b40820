"""Split R-hat and effective draws by ranks, of many coordinates at a time.

The definitions are those of Vehtari, Gelman, Simpson, Carpenter and Buerkner, "Rank-normalization,
folding, and localization: an improved R-hat" (2021), and the figures ArviZ's, whose package takes
most of a second to load. Arrays have axes (chain, draw, coordinate); what is found has one number
for each coordinate. Draws are finite, at least four of each chain.

| symbol | here |
|---|---|
| W, B / n | variance within chains, and of their means |
| rho_t | autocorrelation at lag t over all chains |
| P_k = rho_2k + rho_2k+1 | Geyer's pairs, positive and falling where chains are reversible |
"""

from collections.abc import Callable
from functools import lru_cache
from statistics import NormalDist

import numpy as np

MOST_VALUES = 2**20  # numbers that are looked at together
FEW = 2**14  # draws, whose scores take less time than loading scipy
TAILS = (0.05, 0.95)

Figure = Callable[[np.ndarray], np.ndarray]


def r_hat(draws: np.ndarray) -> np.ndarray:
    """The larger of that of ranks and that of ranks of distances from the median."""
    return _in_parts(_r_hat, draws)


def bulk_effective_draws(draws: np.ndarray) -> np.ndarray:
    """For the middle of the distribution, by ranks."""
    return _in_parts(lambda part: _effective(_normal_scores(_halves(part))), draws)


def tail_effective_draws(draws: np.ndarray) -> np.ndarray:
    """The smaller of those for the 5% and the 95% quantile."""
    return _in_parts(_tail, draws)


def mean_effective_draws(draws: np.ndarray) -> np.ndarray:
    """For the mean."""
    return _in_parts(lambda part: _effective(_halves(part)), draws)


def _in_parts(figure: Figure, draws: np.ndarray) -> np.ndarray:
    """Some coordinates at a time, whose spectra are several times as large."""
    at_once = max(1, MOST_VALUES // (draws.shape[0] * draws.shape[1]))
    starts = range(0, draws.shape[2], at_once)
    return np.concatenate([figure(draws[:, :, start : start + at_once]) for start in starts])


def _r_hat(draws: np.ndarray) -> np.ndarray:
    split = _halves(draws)
    folded = np.abs(split - np.median(split, axis=(0, 1)))
    return np.maximum(*(_potential_reduction(_normal_scores(each)) for each in (split, folded)))


def _potential_reduction(draws: np.ndarray) -> np.ndarray:
    """sqrt((B / W + n - 1) / n)."""
    length = draws.shape[1]
    between = length * np.var(draws.mean(axis=1), axis=0, ddof=1)
    within = np.var(draws, axis=1, ddof=1).mean(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.sqrt((between / within + length - 1) / length)


def _tail(draws: np.ndarray) -> np.ndarray:
    ends = np.quantile(draws, TAILS, axis=(0, 1))
    return np.minimum(*(_effective(_halves(draws <= end).astype(np.float64)) for end in ends))


def _halves(draws: np.ndarray) -> np.ndarray:
    """Each chain as two; of an odd number the draw in the middle is left out."""
    half = draws.shape[1] // 2
    return np.concatenate([draws[:, :half], draws[:, -half:]])


def _normal_scores(draws: np.ndarray) -> np.ndarray:
    """Normal quantiles of (rank - 3/8) / (number + 1/4); equal draws share their mean rank."""
    flat = draws.reshape(-1, draws.shape[2])
    scores = np.empty(flat.shape)
    for coordinate, values in enumerate(flat.T):
        _, place, count = np.unique(values, return_inverse=True, return_counts=True)
        twice = 2 * np.cumsum(count) - (count - 1)  # the mean rank, of which halves occur
        scores[:, coordinate] = _scores_of_ranks(len(values))[twice - 2][place]
    return scores.reshape(draws.shape)


@lru_cache(maxsize=1)
def _scores_of_ranks(number: int) -> np.ndarray:
    """Of the ranks 1, 1.5, 2, ... of so many draws."""
    shares = (np.arange(2, 2 * number + 1) / 2.0 - 0.375) / (number + 0.25)
    if number <= FEW:  # Python's own, because scipy's is slow to load
        return np.fromiter(map(NormalDist().inv_cdf, shares.tolist()), np.float64)
    from scipy.special import ndtri

    return ndtri(shares)


def _effective(draws: np.ndarray) -> np.ndarray:
    """Number / tau, tau = -1 + 2 sum_k P_k, over pairs up to the first that is not positive."""
    num_chains, length, _ = draws.shape
    number = num_chains * length
    covariance = _autocovariances(draws)
    within = covariance[0] * length / (length - 1.0)
    spread = covariance[0] + (np.var(draws.mean(axis=1), axis=0, ddof=1) if num_chains > 1 else 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        # rho_t = 1 - (W - cov_t) / var+
        rho = 1.0 - (within - covariance) / spread
        rho[0] = 1.0
        pairs = rho[0 : length - 1 : 2] + rho[1:length:2]
        last = max(0, (length - 3) // 2)  # pair that is looked at
        is_over = ~(pairs[: last + 1] > 0.0)
        stop = np.where(is_over.any(axis=0), is_over.argmax(axis=0), last)
        # P_k never rises
        falling = np.minimum.accumulate(pairs, axis=0)
        is_counted = np.arange(len(pairs))[:, None] < stop
        beyond = np.take_along_axis(rho, 2 * stop[None], axis=0)[0]
        is_positive = np.take_along_axis(pairs, stop[None], axis=0)[0] > 0.0
        beyond = np.where(is_positive, beyond, np.maximum(beyond, 0.0))
        tau = -1.0 + 2.0 * np.where(is_counted, falling, 0.0).sum(axis=0) + beyond
        found = number / np.maximum(tau, 1.0 / np.log10(number))
    is_constant = np.ptp(draws, axis=(0, 1)) < np.finfo(float).resolution
    return np.where(is_constant, float(number), found)


def _autocovariances(draws: np.ndarray) -> np.ndarray:
    """At every lag, the mean over chains, with axes (lag, coordinate)."""
    length = draws.shape[1]
    room = 1 << (2 * length - 1).bit_length()  # so that the end does not meet the beginning
    spectrum = np.fft.rfft(draws - draws.mean(axis=1, keepdims=True), n=room, axis=1)
    power = (spectrum.real**2 + spectrum.imag**2).mean(axis=0)
    return np.fft.irfft(power, n=room, axis=0)[:length] / length
