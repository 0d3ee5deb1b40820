"""The statements of docs/spectral-gaps.md, on few paths."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

SOURCE = Path(__file__).parent.parent.parent / "docs" / "spectral_gaps.py"


@pytest.fixture(scope="module")
def gaps():
    specification = importlib.util.spec_from_file_location("spectral_gaps", SOURCE)
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


def mean_after(h, b, num_steps):
    """E[theta* | theta = 1] of the Gaussian's leapfrog trajectory."""
    theta, momentum = 1.0, 0.0
    for _ in range(num_steps):
        theta += 0.5 * np.sqrt(h) * momentum
        momentum = ((1 - b) * momentum - np.sqrt(h) * theta) / (1 + b)
        theta += 0.5 * np.sqrt(h) * momentum
    return theta


def test_the_gap_of_a_gaussian_is_known(gaps):
    """With small steps nearly all is accepted, and the slowest function is theta: the gap is 1 -
    E[theta* | theta = 1].
    """
    problem, dynamics = gaps.gaussian(), gaps.Dynamics(0.01, 0.025, 10)
    moves = gaps.simulate(problem, dynamics, 0.0, 50_000, 0)
    expected = 1.0 - mean_after(*dynamics)
    assert gaps.gap_of(problem, moves).value == pytest.approx(expected, rel=0.03)
    assert gaps.gap_on_bins(problem, moves, 60) == pytest.approx(expected, rel=0.03)
    assert gaps.gap_without_noise(0.01, 10, 5.0) == pytest.approx(
        1.0 - mean_after(0.01, 0.0, 10), rel=0.01
    )


@pytest.mark.slow
@pytest.mark.parametrize(("name", "step_size"), [("double_well", 0.25), ("gaussian", 0.1)])
@pytest.mark.parametrize("noise", [0.3, 1.0, 2.0])
def test_gaps_follow_the_acceptance_and_exceed_the_bound(gaps, name, step_size, noise):
    row = gaps.compare(
        getattr(gaps, name)(), noise, num_paths=40_000, num_seeds=2, step_size=step_size
    )
    assert abs(row.gap_ratio - row.acceptance_ratio) < 0.13
    assert abs(row.acceptance_ratio - row.predicted_ratio) < 0.08
    assert row.is_assumption_met
    assert min(row.gap_ratio, row.rescaled_ratio) > row.bound
    # the discretisation: another basis, and transitions between bins
    assert abs(row.basis_error) < 0.01
    assert abs(row.bins_ratio - row.gap_ratio) < 0.02


def test_a_resonance_breaks_the_bound(gaps):
    found = gaps.resonance(3.0, num_paths=20_000)
    assert found.bound == pytest.approx(0.2865, abs=1e-4)
    assert found.gap_full == pytest.approx(0.0046, rel=0.1)
    assert found.gap_full == pytest.approx(
        gaps.gap_without_noise(3.0 / np.sqrt(13 / 12), 3, 4.0), rel=0.1
    )
    assert found.gap_noisy < 5e-6
    assert found.gap_noisy / found.gap_full < found.bound / 100


def test_far_starts_are_rejected(gaps):
    """Half drift, kick, half drift gains energy far out, so on the whole line the gap of L2MC
    itself is zero.
    """
    dynamics = gaps.Dynamics(0.0625, 0.0625, 10)
    rates = [gaps.acceptance_from(at, dynamics) for at in (0.0, 20.0, 40.0, 80.0)]
    assert rates[0] > 0.99
    assert rates == sorted(rates, reverse=True)
    assert rates[-1] < 0.02
    h = 3.0 / np.sqrt(13 / 12)
    assert gaps.gap_without_noise(h, 3, 16.0) < 0.15 * gaps.gap_without_noise(h, 3, 8.0)
