"""Mixed models through the public call: planned as sweeps, stored, stopped and resumed."""

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


def one_intercept():
    x, y, group, _ = mixed_table()
    return models.mixed(x, y, {"1|g": group})


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
    with pytest.warns(amagold.SamplingWarning, match="no draws were kept"):
        amagold.sample(target, **settings, store=tmp_path / "run.zarr", max_time=1e-6)
    with pytest.warns(amagold.SamplingWarning):
        resumed = amagold.resume(tmp_path / "run.zarr", target, progress=False)
    for name in run.posterior:
        np.testing.assert_array_equal(
            resumed.posterior[name].to_numpy(), run.posterior[name].to_numpy()
        )
