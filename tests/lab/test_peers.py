"""The benches against other libraries: their pieces, at sizes where they take seconds; not their
speed.
"""

import numpy as np
import pytest
from false_alarms import PLANTED, threshold

from amagold.target import Posterior
from amagold_lab import bench
from amagold_lab.bench import against_peers, benchmark_posteriors, memory
from amagold_lab.bench.benchmark_posteriors import BenchmarkPosterior
from amagold_lab.bench.benchmark_table import table_row
from amagold_lab.bench.benchmarks import BENCHMARKS
from amagold_lab.bench.effective_sample_size import (
    TimedDraws,
    check_draws_agree,
    effective_draws,
    largest_difference,
)
from amagold_lab.bench.measure import Benchmark, Measurement, NoRatioError

COMPARISONS = 6  # the means and variances of three coordinates


def autoregressive(
    correlation: float, num_draws: int = 4_000, shape: tuple[int, ...] = (4, 2)
) -> np.ndarray:
    """Chains of N(0, 1) with a known autocorrelation, axes (chain, draw, coordinate)."""
    noise = np.random.default_rng(0).normal(size=(num_draws, *shape))
    for index in range(1, num_draws):
        noise[index] = correlation * noise[index - 1] + np.sqrt(1.0 - correlation**2) * noise[index]
    return noise.swapaxes(0, 1)


@pytest.mark.parametrize("correlation", [0.5, 0.9])
def test_effective_draws_of_known_chains(correlation: float) -> None:
    values = autoregressive(correlation)
    # of the mean n (1 - c) / (1 + c); the squares have the correlation c^2 and are worth more
    expected = values[..., 0].size * (1.0 - correlation) / (1.0 + correlation)
    assert 0.75 * expected < effective_draws(values) < 1.2 * expected


def test_squares_count() -> None:
    # swings from side to side: the mean is known at once, the spread is not
    values = autoregressive(-0.9)
    expected = values[..., 0].size * (1.0 - 0.81) / (1.0 + 0.81)
    assert 0.75 * expected < effective_draws(values) < 1.3 * expected
    assert effective_draws(values + 100.0) == pytest.approx(effective_draws(values), rel=1e-6)


def test_seconds_from_nothing() -> None:
    draws = TimedDraws(autoregressive(0.5), setup_seconds=7.0, sampling_seconds=2.0)
    assert draws.seconds_to(draws.num_effective) == pytest.approx(9.0)
    assert draws.seconds_to(0.5 * draws.num_effective) == pytest.approx(8.0)


def test_draws_of_another_posterior_are_void() -> None:
    ours, theirs = (
        TimedDraws(autoregressive(0.5), 1.0, 1.0),
        TimedDraws(autoregressive(-0.5), 1.0, 1.0),
    )
    check_draws_agree(ours, theirs, "NUTS")
    with pytest.raises(NoRatioError, match="void: a mean or variance differs from that of NUTS"):
        check_draws_agree(ours, theirs._replace(values=theirs.values + 0.1), "NUTS")
    with pytest.raises(NoRatioError, match="void: a mean or variance"):
        check_draws_agree(ours._replace(values=1.2 * ours.values), theirs, "NUTS")
    with pytest.raises(NoRatioError, match="effective draws in NUTS, give more --seconds"):
        check_draws_agree(ours, theirs._replace(values=theirs.values[:1, :30]), "NUTS")


PROBLEMS = {
    "logistic": benchmark_posteriors.logistic(300, 4),
    "own likelihood": benchmark_posteriors.own_likelihood(300, 4),
    "softmax": benchmark_posteriors.softmax(300, 2, 3),
    "robust": benchmark_posteriors.robust(300, 4),
    "australian": benchmark_posteriors.australian(),
}


@pytest.mark.parametrize("problem", PROBLEMS.values(), ids=PROBLEMS)
def test_both_ways_to_write_a_problem_agree(problem: BenchmarkPosterior) -> None:
    target, data = problem.target(), problem.data()
    generator = np.random.default_rng(0)
    shape = np.shape(target.init)
    positions = [generator.normal(0.0, 0.5, shape).astype(np.float32) for _ in range(4)]
    ours = np.array([_log_density(target, position) for position in positions])
    theirs = np.array([problem.log_density(position.reshape(-1), *data) for position in positions])
    np.testing.assert_allclose(np.diff(ours), np.diff(theirs), rtol=1e-3, atol=1e-2)


def _log_density(target: Posterior, position: np.ndarray) -> float:
    return float(target.log_prior(position) + target.log_likelihoods(position, target.data).sum())


def test_a_table_is_made_once_and_draws_too() -> None:
    made = []

    def make() -> TimedDraws:
        made.append(1)
        return TimedDraws(np.zeros((1, 1, 1)), 0.0, 0.0)

    key = object()
    assert against_peers.once(key, make) is against_peers.once(key, make)
    assert len(made) == 1


def test_long_rows_run_by_name_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = tuple(
        Benchmark(
            name,
            "one / other",
            1.0,
            True,
            lambda seconds: Measurement(2.0, details="4 and 2"),
            is_long,
        )
        for name, is_long in (("quick", False), ("slow", True))
    )
    monkeypatch.setattr("amagold_lab.bench.benchmarks.BENCHMARKS", rows)
    bench.run()
    assert "by name alone (--only): slow" in capsys.readouterr().out
    assert table_row(rows[1], 1.0)[-1] == "one / other: 4 and 2"


def test_nuts_as_it_comes_is_counted_on_a_part_and_timed_on_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    values, whole, part = (
        autoregressive(0.5),
        benchmark_posteriors.logistic(1000, 3),
        benchmark_posteriors.logistic(100, 3),
    )
    worth = TimedDraws(values, 0.0, 1.0).num_effective
    known = {
        "ours": TimedDraws(values, 7.0, 1.0),
        ("NUTS", whole.name, 1.0): TimedDraws(values, 0.0, 30.0, sampling_gradients=600),
        ("NUTS as it comes", part.name): TimedDraws(
            values, 1.0, 1.0, setup_gradients=20_000, sampling_gradients=5_000
        ),
    }
    monkeypatch.setattr(against_peers, "_known", known)
    found = against_peers.measure_from_nothing_as_it_comes("ours", whole, part, 1.0)
    # 0.05 s for each of 20,000 gradients and of those that 1,000 effective draws take
    assert found.ratio == pytest.approx(
        0.05 * (20_000 + 1_000 * 5_000 / worth) / (7.0 + 1_000 / worth)
    )


def test_peers_that_are_missing_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    import importlib

    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    monkeypatch.setattr(
        against_peers,
        "_known",
        {"logistic 1000000 x 20": TimedDraws(autoregressive(0.5), 1.0, 1.0)},
    )
    row = table_row(next(row for row in BENCHMARKS if row.name == "flat-logistic-1e6"), 1.0)
    assert row[3] == "skipped"
    assert "needs numpyro: pip install 'amagold[peers]'" in row[5]


@pytest.mark.slow
def test_numpyro_nuts_and_hmcecs_agree_with_blackjax() -> None:
    pytest.importorskip("numpyro")
    pytest.importorskip("blackjax")
    from amagold_lab.bench import hmcecs, peers

    problem = benchmark_posteriors.logistic(400, 3)
    reference = peers.blackjax_nuts(problem, num_chains=2, num_warmup=200, num_samples=500)
    assert reference.values.shape == (2, 500, 3)
    for draws in (
        peers.numpyro_nuts(problem, 2, 100, 1.0, whitened=True, block=100),
        peers.numpyro_nuts(problem, 2, 500, 1.0, whitened=False, from_mode=False, block=100),
        hmcecs.draws(problem, 1.0, subsample=100, num_blocks=5),
    ):
        assert draws.setup_seconds > 0.0
        assert (draws.setup_gradients > 0) == (draws.sampling_gradients > 0)
        assert draws.per_second > 0.0
        assert largest_difference(draws.values, reference.values) < threshold(COMPARISONS)
        assert largest_difference(1.5 * draws.values, reference.values) > PLANTED * threshold(
            COMPARISONS
        )


@pytest.mark.slow
def test_memory_of_the_data() -> None:
    found = memory.measure_data(2_000, 3, 0.0)
    assert found.ratio > 0.0
    assert "MB of data" in found.details
