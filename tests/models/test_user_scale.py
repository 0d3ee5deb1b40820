"""Models on tables as they come: years, pressures, salaries. Defaults give the right answer in the
user's units, whatever these are.
"""

import jax
import numpy as np
import pytest
import xarray
from false_alarms import PLANTED, threshold

import amagold
from amagold import models
from amagold.sampling._prepare import prepare
from amagold.sampling._settings import Settings
from amagold.sampling._stored_recipe import load_recipe
from amagold.target._reported import reported

GENERATOR = np.random.default_rng(5)
NUM_ROWS = 300
YEARS = GENERATOR.integers(1990, 2025, NUM_ROWS).astype(np.float64)
NOISE = GENERATOR.normal(size=NUM_ROWS)
TABLES = {
    "salaries by year": (YEARS, 5000.0 + 10.0 * (YEARS - 2000.0) + 360.0 * NOISE),
    "air pressure": (GENERATOR.normal(size=NUM_ROWS), 101_325.0 + NOISE),
    "far and narrow": (1e8 + GENERATOR.normal(size=NUM_ROWS), 1e-3 * NOISE),
}
SETTINGS = {"num_samples": 500, "num_warmup": 100, "num_chains": 4, "progress": False}


def exact_moments(x, y, widths=None):
    """Means and standard deviations of (intercept, slope, log noise scale), by quadrature over the
    noise scale, in float64.

    Beside the data there is the prior of docs/models.md, or (slope, intercept, log noise) standard
    deviations about zero.
    """
    center, spread = x.mean(), x.std()
    rows = np.column_stack([np.ones(len(x)), (x - center) / spread])
    location, wide = (
        (np.array([y.mean(), 0.0]), 2.5 * y.std() * np.ones(2))
        if widths is None
        else (np.zeros(2), np.array(widths))
    )
    logs = np.linspace(np.log(y.std()) - 1.0, np.log(y.std()) + 1.0, 2001)
    weights, means, seconds = [], [], []
    back = np.array([[1.0, -center / spread], [0.0, 1.0 / spread]])
    for log_noise in logs:
        variance = np.exp(2.0 * log_noise)
        precision = rows.T @ rows / variance + np.diag(wide**-2.0)
        # about the location, so that nothing cancels
        away = y - rows @ location
        mean = np.linalg.solve(precision, rows.T @ away / variance)
        fit = away @ away / variance - mean @ precision @ mean
        of_noise = -0.5 * ((log_noise - np.log(y.std())) / 2.0) ** 2
        weights.append(
            -len(x) * log_noise - 0.5 * fit - 0.5 * np.linalg.slogdet(precision)[1] + of_noise
        )
        means.append(np.append(back @ mean, log_noise))
        seconds.append(np.append(np.diag(back @ np.linalg.inv(precision) @ back.T), 0.0))
    weights = np.exp(np.array(weights) - np.max(weights))
    weights /= weights.sum()
    means, seconds = np.array(means), np.array(seconds)
    mean = weights @ means
    deviation = np.sqrt(weights @ (seconds + (means - mean) ** 2))
    return mean + np.append(back @ location, 0.0), deviation


def draws_of(run):
    found = np.concatenate(
        [run.posterior["coefficients"].values, run.posterior["log_noise_scale"].values[..., None]],
        axis=-1,
    )
    return found.reshape(-1, 3)


def worst_moment(draws, mean, deviation):
    """The largest error of a mean or a standard deviation as a share of its threshold; each fourth
    draw counts as one.
    """
    effective = len(draws) / 4.0
    away = (draws.mean(axis=0) - mean) / (deviation / np.sqrt(effective))
    wide = (draws.std(axis=0) / deviation - 1.0) * np.sqrt(2.0 * effective)
    return np.max(np.abs([away, wide])) / threshold(6)


@pytest.fixture(scope="module")
def runs():
    """One program for all of them."""
    return {
        name: amagold.sample(models.linear(x[:, None], y), **SETTINGS)
        for name, (x, y) in TABLES.items()
    }


@pytest.mark.slow
@pytest.mark.parametrize("name", TABLES)
def test_defaults_give_the_posterior_in_the_users_units(runs, name):
    x, y = TABLES[name]
    mean, deviation = exact_moments(x, y)
    assert runs[name].warnings == []
    assert worst_moment(draws_of(runs[name]), mean, deviation) < 1.0


def test_the_old_defaults_would_be_seen():
    """A noise of one, priors N(0, 1) on the raw scale, and an intercept rounded to float32: each is
    far outside.
    """
    x, y = TABLES["salaries by year"]
    mean, deviation = exact_moments(x, y)
    draws = mean + deviation * np.random.default_rng(0).normal(size=(2000, 3))
    assert worst_moment(draws, mean, deviation) < 1.0
    known_noise = mean + deviation * [1.0 / 360.0, 1.0 / 360.0, 1.0] * np.random.default_rng(
        0
    ).normal(size=(2000, 3))
    assert worst_moment(known_noise, mean, deviation) > PLANTED
    narrow = exact_moments(x, y, widths=(1.0, 1.0 * x.std()))[0]
    assert worst_moment(draws + narrow - mean, mean, deviation) > PLANTED
    x, y = TABLES["far and narrow"]
    mean, deviation = exact_moments(x, y)
    draws = mean + deviation * np.random.default_rng(0).normal(size=(2000, 3))
    assert worst_moment(np.float32(draws * 1e-3 + mean), mean, deviation) > PLANTED


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_the_priors_are_said_with_the_plan(capsys):
    x, y = TABLES["salaries by year"]
    target = models.linear(x[:, None], y)
    amagold.sample(target, 20, 20, 4, max_time=1e-9)
    said = capsys.readouterr().out
    assert target.notes[0] in said
    width = f"{2.5 * y.std():.4g}"
    for words in (
        "Priors scaled by the data (prior_scale sets others)",
        f"N(0, {width}^2)",
        f"N({y.mean():.4g}, {width}^2)",
        "log of the noise",
    ):
        assert words in said
    assert (
        models.linear(x[:, None], y, prior_scale=3.0)
        .notes[0]
        .startswith("Priors as given: each coefficient ~ N(0, 3^2)")
    )


def test_a_far_column_keeps_the_fast_path(runs):
    for run in runs.values():
        assert run.plan.integrator == "rotation"
        assert run.plan.is_curvature_positive


def test_starts_are_given_on_the_users_scale():
    """One for all or one for each, to more digits than float32 has."""
    x, y = TABLES["air pressure"]
    target, settings = models.linear(x[:, None], y), Settings(4, 0, 2, 0, 1, amagold.Warmup())
    start = {"coefficients": np.array([101_325.0123, 0.5]), "log_noise_scale": 0.25}
    each = jax.tree.map(lambda leaf: np.stack([leaf, leaf + 0.125]), start)
    for given in ({"init": start, "init_per_chain": None}, {"init": None, "init_per_chain": each}):
        began = reported(target, prepare(target, settings, **given).positions, 1)
        wanted = (
            each
            if given["init"] is None
            else jax.tree.map(lambda leaf: np.stack([leaf, leaf]), start)
        )
        jax.tree.map(
            lambda found, asked: np.testing.assert_allclose(found, asked, rtol=0, atol=1e-5),
            began,
            wanted,
        )
    with pytest.raises(
        ValueError, match=r"init must be like the target's own positions, .*; give that form"
    ):
        amagold.sample(target, init=np.zeros(3), progress=False)


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_a_run_of_a_standardised_model_goes_on(tmp_path, runs, monkeypatch):
    """Stopped, resumed from the model that is stored with it, and loaded: bit for bit, in the
    user's units.
    """
    x, y = TABLES["air pressure"]
    monkeypatch.setattr("amagold.runner._layout.MAX_CHUNK", 100)
    path = tmp_path / "run.zarr"
    amagold.sample(models.linear(x[:, None], y), **SETTINGS, store=path, max_time=1e-9)
    run = amagold.resume(path, load_recipe(path), progress=False)
    xarray.testing.assert_equal(run.posterior.load(), runs["air pressure"].posterior)
    xarray.testing.assert_equal(amagold.load(path).posterior.load(), runs["air pressure"].posterior)
    assert run.attributes["notes"] == list(models.linear(x[:, None], y).notes)


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_the_same_data_in_other_units_are_other_data(tmp_path):
    x, y = TABLES["air pressure"]
    path = tmp_path / "run.zarr"
    amagold.sample(models.linear(x[:, None], y), **SETTINGS, store=path, max_time=1e-9)
    with pytest.warns(amagold.SamplingWarning, match="the data fingerprint changed"):
        amagold.resume(path, models.linear(x[:, None], y - 65_536.0), progress=False, max_time=1e-9)


def test_standardising_is_decided_by_the_table():
    plain, outcomes = GENERATOR.normal(size=(50, 2)), GENERATOR.normal(size=50)
    assert models.linear(plain, outcomes).transform is None
    assert models.linear(plain, outcomes, standardize=True).transform is not None
    for moved in (np.add(plain, [0.0, 5.0]), plain * [1.0, 50.0], plain / 50.0):
        assert models.linear(moved, outcomes).transform is not None
        assert models.linear(moved, outcomes, standardize=False).transform is None
    for moved in (outcomes + 5.0, 50.0 * outcomes, outcomes / 50.0):
        assert models.linear(plain, moved).transform is not None
    assert models.poisson(plain, np.full(50, 1000)).transform is None  # a link has no units


def test_diagnostics_take_the_users_scale(runs):
    x, y = TABLES["salaries by year"]
    target, run = models.linear(x[:, None], y), runs["salaries by year"]
    draws = {name: run.posterior[name].values for name in ("coefficients", "log_noise_scale")}
    good = amagold.kernel_stein_discrepancy(target, draws, max_draws=500)
    wrong = amagold.kernel_stein_discrepancy(
        target, draws | {"log_noise_scale": draws["log_noise_scale"] + 0.2}, max_draws=500
    )
    assert wrong > 3.0 * good


def test_a_transform_needs_a_way_back():
    parts = {
        "log_likelihood": lambda at, row: -((at - row) ** 2),
        "log_prior": lambda at: 0.0,
        "data": np.zeros(3),
    }
    with pytest.raises(
        ValueError, match="transform must map a position to what is reported, and back"
    ):
        amagold.Posterior(**parts, transform=np.exp)


class Exp:
    """A transform of the user's own, without numbers."""

    def __call__(self, position):
        return {"rate": np.exp(position)}

    def inverse(self, reported):
        return np.log(reported["rate"])


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_a_transform_of_the_users_own():
    target = amagold.Posterior(
        lambda at, count: count * at - jax.numpy.exp(at),
        lambda at: -0.5 * at**2,
        np.array([1.0, 2.0, 4.0]),
        init=0.0,
        transform=Exp(),
    )
    run = amagold.sample(
        amagold.hmc(target, step_size=0.2), 50, 10, 2, init={"rate": 2.0}, progress=False
    )
    assert list(run.posterior.data_vars) == ["rate"]
    assert float(run.posterior["rate"].min()) > 0.0
