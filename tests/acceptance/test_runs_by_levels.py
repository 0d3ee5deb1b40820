"""Whole runs whose test draws rows by levels: they agree with tests of all rows, and go on."""

import dataclasses

import arviz_stats
import numpy as np
import pytest
from coded_tables import coded
from false_alarms import PLANTED, threshold

import amagold
from amagold import acceptance, models
from amagold.acceptance._level_test import LevelTest

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")]


def many(family, num_levels, size=200_000):
    """Two factors of many levels, most of them rare."""
    generator = np.random.default_rng(6)
    codes = (generator.zipf(1.4, (size, 2)) % num_levels).astype(np.int32) - 1
    table = coded(generator.normal(size=(size, 1)), codes, (num_levels - 1, num_levels - 1))
    if family is models.negative_binomial:
        return family(table, generator.geometric(0.5, size) - 1)  # of mean and shape one
    return family(table, generator.integers(0, 3 if family is models.ordinal else 2, size))


def apart(first, second, moved=0.0):
    """The largest difference of means and squares of two runs, as a share of its threshold; the
    draws of the first are moved by so many of their deviations.
    """
    found = []
    for name in first.posterior:
        mine, other = (np.asarray(run.posterior[name]) for run in (first, second))
        mine, other = (each.reshape(*each.shape[:2], -1) for each in (mine, other))
        center, spread = other.mean((0, 1)), other.std((0, 1))
        mine, other = (mine - center) / spread + moved, (other - center) / spread
        for place in range(mine.shape[-1]):
            for power in (1, 2):
                values = [each[..., place] ** power for each in (mine, other)]
                errors = [
                    each.std() / np.sqrt(float(arviz_stats.ess(each, method="mean")))
                    for each in values
                ]
                found.append((values[0].mean() - values[1].mean()) / np.hypot(*errors))
    assert len(found) > 80
    return np.abs(found).max() / threshold(len(found))


@pytest.mark.parametrize("family", [models.negative_binomial, models.ordinal])
def test_draws_by_levels_agree_with_tests_of_all_rows(family):
    target = many(family, 20, 40_000)
    settings = {"num_samples": 1_000, "num_warmup": 100, "num_chains": 4, "progress": False}
    few = amagold.sample(target, **settings)
    assert isinstance(few.sampler.acceptance, LevelTest)
    assert float(few.sample_stats["num_energy_examples"].mean()) < 0.2 * target.num_examples
    over_all = dataclasses.replace(few.sampler, acceptance=acceptance.full())
    middle = {name: values.mean(("chain", "draw")).values for name, values in few.posterior.items()}
    whole = amagold.sample(over_all, **settings, init=middle, seed=1)
    assert apart(few, whole) < 1.0
    assert apart(few, whole, moved=0.3) > PLANTED, "a third of a deviation would be seen"


@pytest.mark.parametrize(
    ("family", "num_levels", "gradient"),
    [
        (models.logistic, 60, "control variate"),
        (models.logistic, 150, "expansion"),
        (models.ordinal, 150, "expansion"),
    ],
)
def test_a_run_by_levels_goes_on_to_the_bit(tmp_path, family, num_levels, gradient):
    target = many(family, num_levels)
    settings = {"num_samples": 200, "num_warmup": 50, "num_chains": 2, "progress": False}
    whole = amagold.sample(target, **settings)
    assert whole.plan.gradient == gradient
    assert isinstance(whole.sampler.acceptance, LevelTest)
    path = tmp_path / "run.zarr"
    amagold.sample(target, **settings, store=path, max_time=1e-6)
    resumed = amagold.resume(path, target, progress=False)
    for name in whole.posterior:
        np.testing.assert_array_equal(resumed.posterior[name], whole.posterior[name])
