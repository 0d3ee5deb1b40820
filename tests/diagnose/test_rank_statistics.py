"""Our figures of convergence are ArviZ's, on chains of every kind."""

import numpy as np
import pytest

from amagold.core.arviz import arviz_stats
from amagold.diagnose import _rank_statistics as ours

SHAPES = [(4, 500), (1, 101), (3, 4), (2, 5), (5, 7), (8, 64), (2, 1001)]


def chains(shape: tuple[int, int], seed: int) -> np.ndarray:
    """Coordinates that are independent, slow, turning, standing still at times, apart, heavy."""
    generator = np.random.default_rng(seed)
    noise = generator.normal(size=(*shape, 6))
    slow, turning = noise[..., 1].copy(), noise[..., 2].copy()
    still = noise[..., 3].copy()
    for draw in range(1, shape[1]):
        slow[:, draw] += 0.95 * slow[:, draw - 1]
        turning[:, draw] -= 0.7 * turning[:, draw - 1]
        stays = generator.random(shape[0]) < 0.7
        still[stays, draw] = still[stays, draw - 1]
    apart = noise[..., 4] + 3.0 * np.arange(shape[0])[:, None]
    heavy = noise[..., 5] / np.abs(noise[..., 0])
    return np.stack([noise[..., 0], slow, turning, still, apart, heavy], axis=-1)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("seed", range(3))
def test_figures_are_those_of_arviz(shape: tuple[int, int], seed: int) -> None:
    draws, stats = chains(shape, seed), arviz_stats()
    axes = {"chain_axis": 0, "draw_axis": 1}
    wanted = {
        ours.bulk_effective_draws: stats.ess(draws, method="bulk", **axes),
        ours.tail_effective_draws: stats.ess(draws, method="tail", prob=(0.05, 0.95), **axes),
        ours.mean_effective_draws: stats.ess(draws, method="mean", **axes),
    }
    if shape[0] > 1:
        with np.errstate(divide="ignore"):  # of halves of two draws, which may be equal
            wanted[ours.r_hat] = stats.rhat(draws, method="rank", **axes)
    for function, figures in wanted.items():
        np.testing.assert_allclose(function(draws), figures, rtol=1e-6, err_msg=function.__name__)


def test_parts_make_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    draws = chains((4, 50), 0)
    whole = ours.bulk_effective_draws(draws)
    monkeypatch.setattr(ours, "MOST_VALUES", 450)  # two coordinates at a time
    np.testing.assert_array_equal(ours.bulk_effective_draws(draws), whole)
