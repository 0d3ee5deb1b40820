"""Mixed models through the public call: planned as sweeps, stored, stopped and resumed."""

import arviz_stats
import numpy as np
import pytest

import amagold
from amagold import models
from amagold.planning._effects_plan import EffectsPlan


def mixed_table(family="logistic", size=2_000, levels=25):
    generator = np.random.default_rng(2)
    group, other = generator.integers(0, levels, size), generator.integers(0, 4, size)
    x = generator.normal(size=(size, 1))
    z = 0.5 * x[:, 0] - 0.5 + generator.normal(size=levels)[group]
    y = z + generator.normal(size=size)
    if family == "logistic":
        y = generator.random(size) < 1.0 / (1.0 + np.exp(-z))
    return x, y, group, other


def unequal_groups(size=100_000, levels=10_000):
    """Half of the groups have three rows or fewer, one has thousands."""
    generator = np.random.default_rng(1)
    weights = 1.0 / np.arange(1, levels + 1)
    drawn = generator.choice(levels, size - levels, p=weights / weights.sum())
    group = np.concatenate([np.arange(levels), drawn])
    x = generator.normal(size=(size, 9)).astype(np.float32)
    slopes = 0.3 * generator.normal(size=10)
    z = slopes[0] + x @ slopes[1:] + generator.normal(size=levels)[group]
    return models.mixed(x, generator.random(size) < 1.0 / (1.0 + np.exp(-z)), {"1|g": group})


def one_intercept():
    x, y, group, _ = mixed_table()
    return models.mixed(x, y, {"1|g": group})


@pytest.mark.slow
def test_a_mixed_model_is_sampled_by_sweeps(tmp_path):
    """Stored, stopped and resumed: the same draws to the bit."""
    target = one_intercept()
    settings = {"num_samples": 60, "num_warmup": 40, "num_chains": 2, "progress": False}
    with pytest.warns(amagold.SamplingWarning):
        run = amagold.sample(target, **settings)
    assert isinstance(run.plan, EffectsPlan)
    assert "a test of its own" in str(run.plan)
    assert run.label == "exact"
    assert set(run.posterior) == {"theta", "1|g", "1|g_sigma"}
    assert run.posterior["1|g"].shape == (2, 60, 25)
    assert (run.posterior["1|g_sigma"].to_numpy() > 0).all()
    assert float(run.sample_stats["num_energy_examples"].mean()) < 0.5 * target.num_examples
    moves = ("theta", "1|g", "1|g_sigma")
    rows = [run.sample_stats[f"num_energy_examples_{move}"].to_numpy() for move in moves]
    np.testing.assert_array_equal(sum(rows), run.sample_stats["num_energy_examples"].to_numpy())
    rates = [float(run.sample_stats[f"acceptance_rate_{move}"].mean()) for move in moves]
    assert all(0.1 < rate <= 1.0 for rate in rates)
    assert rates[0] == pytest.approx(float(run.sample_stats["acceptance_rate"].mean()))
    with pytest.warns(amagold.SamplingWarning, match="no draws were kept"):
        amagold.sample(target, **settings, store=tmp_path / "run.zarr", max_time=1e-6)
    with pytest.warns(amagold.SamplingWarning):
        resumed = amagold.resume(tmp_path / "run.zarr", target, progress=False)
    for name in run.posterior:
        np.testing.assert_array_equal(
            resumed.posterior[name].to_numpy(), run.posterior[name].to_numpy()
        )


@pytest.mark.slow
def test_many_small_groups_mix():
    """The reference of such groups is far from where chains are, until it has moved there."""
    run = amagold.sample(unequal_groups(), progress=False)
    slopes = run.posterior["theta"].to_numpy()
    scale = np.log(run.posterior["1|g_sigma"].to_numpy())
    for draws in (*np.moveaxis(slopes, 2, 0), scale):
        assert float(arviz_stats.ess(draws)) > 0.05 * draws.size
        assert float(arviz_stats.rhat(draws)) < 1.01
