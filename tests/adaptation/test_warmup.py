"""Warm-up reaches what it aims for, from anywhere, and is frozen before the first kept draw."""

import jax.numpy as jnp
import numpy as np
import pytest
from doubles import some_of

import amagold
from amagold.adaptation import _dual_averaging as step_size, _windows as schedule
from amagold.mode._mode_search import find_mode
from amagold.models._synthetic import dist1, dist2
from amagold.trajectory._mass_matrix import DenseMass, DiagonalMass

pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")

HEART = amagold.datasets.heart()
PROBLEMS = {
    "double well": (amagold.models.double_well(), 0.0, {"gradient": amagold.gradients.noisy(1.0)}),
    "Dist1": (dist1(), np.zeros(2), {"gradient": amagold.gradients.noisy(1.0)}),
    "Dist2": (dist2(), np.zeros(2), {"gradient": amagold.gradients.noisy(1.0)}),
    "heart": (
        amagold.models.logistic(HEART.X, HEART.y, prior_scale=1.0),
        np.zeros(14),
        {"batch_size": 32},
    ),
}


def acceptance_after(problem, start, wanted, num_chains=64):
    """Acceptance of the kept draws after a warm-up from that step size, and the run."""
    target, init, gradient = PROBLEMS[problem]
    sampler = amagold.amagold(target, step_size=start, **gradient)
    warmup = amagold.Warmup(target_acceptance=wanted)
    run = amagold.sample(
        sampler, 1_000, 1_000, num_chains, init=init, progress=False, warmup=warmup
    )
    return float(run.sample_stats["acceptance_rate"].mean()), run


@pytest.mark.slow
@pytest.mark.parametrize("start", some_of([1e-4, 1e-2, 1.0], 1e-4))
@pytest.mark.parametrize("problem", some_of(PROBLEMS, "double well"))
def test_acceptance_reaches_its_target_from_starts_ten_thousand_times_apart(problem, start):
    found, run = acceptance_after(problem, start, 0.85)
    assert abs(found - 0.85) < 0.03
    assert np.unique(run.sample_stats["step_size"]).size == 1, "frozen while draws are kept"


@pytest.mark.slow
@pytest.mark.parametrize("wanted", [0.5, 0.65, 0.95])
def test_other_targets(wanted):
    found, _ = acceptance_after("double well", 0.01, wanted)
    assert abs(found - wanted) < 0.03


@pytest.mark.parametrize(
    "bug", ["it never moves", pytest.param("the sign is wrong", marks=pytest.mark.slow)]
)
def test_a_broken_adaptation_is_caught(monkeypatch, bug):
    """The planted twin of the tests above; a number of chains of its own keeps the broken program
    from being used elsewhere.
    """
    right = step_size.update
    num_chains = {"it never moves": 5, "the sign is wrong": 7}[bug]
    wrong = {
        "it never moves": lambda step, *others: step,
        "the sign is wrong": lambda step, stage, acceptance, wanted: right(
            step, stage, wanted, acceptance
        ),
    }[bug]
    monkeypatch.setattr("amagold.adaptation._dual_averaging.update", wrong)
    found, _ = acceptance_after("double well", 0.01, 0.85, num_chains=num_chains)
    assert abs(found - 0.85) > 0.06


@pytest.mark.slow
def test_a_density_that_is_nan_in_places_is_survived():
    def log_density(theta):
        return jnp.where(theta < 3.0, -0.5 * theta**2, jnp.nan)

    sampler = amagold.hmc(amagold.Density(log_density), step_size=50.0, num_steps=3)
    run = amagold.sample(
        sampler, 500, 500, 16, init=0.0, progress=False, warmup=amagold.Warmup(0.8)
    )
    assert abs(float(run.sample_stats["acceptance_rate"].mean()) - 0.8) < 0.05
    assert np.isfinite(run.posterior["theta"]).all()


def correlated():
    """A Gaussian whose parameters differ in scale by a thousand and are correlated, as a dict."""
    scales, correlation = (
        np.array([0.01, 1.0, 10.0]),
        np.array([[1.0, 0.9, 0.0], [0.9, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    )
    covariance = correlation * np.outer(scales, scales)
    precision = jnp.asarray(np.linalg.inv(covariance), jnp.float32)

    def log_density(theta):
        flat = jnp.concatenate([theta["a"], theta["b"][None]])
        return -0.5 * flat @ precision @ flat

    return amagold.Density(log_density), {"a": np.zeros(2), "b": 0.0}, covariance


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "form"),
    [pytest.param("diagonal", DiagonalMass, marks=pytest.mark.slow), ("dense", DenseMass)],
)
def test_the_mass_is_the_inverse_covariance_of_the_draws(kind, form):
    target, init, covariance = correlated()
    sampler = amagold.hmc(target, step_size=0.003, num_steps=10)
    warmup = amagold.Warmup(0.8, kind, keep=True)
    run = amagold.sample(sampler, 2_000, 1_000, 16, init=init, progress=False, warmup=warmup)
    flat = np.concatenate(
        [run.posterior["a"].values, run.posterior["b"].values[..., None]], axis=-1
    ).reshape(-1, 3)
    np.testing.assert_allclose(
        in_units(np.cov(flat.T), covariance), in_units(covariance, covariance), atol=0.15
    )
    assert run.warmup_posterior.sizes["draw"] == 1_000
    mass = run.sampler.settings["mass"]
    assert isinstance(mass, form)
    if kind == "diagonal":
        np.testing.assert_allclose(
            np.asarray(mass.inverse_scale) ** 2 / np.diag(covariance), 1.0, atol=0.3
        )
    else:
        factor = np.asarray(mass.inverse_factor, np.float64)
        np.testing.assert_allclose(
            in_units(factor.T @ factor, covariance), in_units(covariance, covariance), atol=0.2
        )
    scale = run.warmup_sample_stats["mass_scale"].values[0]
    assert len(np.unique(scale)) == 3, "as given, the first estimate, the second"
    sign, log_determinant = np.linalg.slogdet(covariance)
    if kind == "dense":
        assert sign * scale[-1] == pytest.approx(np.exp(log_determinant / 6), rel=0.1)


def in_units(matrix, covariance):
    scales = np.sqrt(np.diag(covariance))
    return matrix / np.outer(scales, scales)


def test_history_says_how_the_step_size_moved():
    _, run = acceptance_after("double well", 1e-4, 0.85)
    history = run.warmup_sample_stats
    assert history.sizes["draw"] == 1_000
    assert history["step_size"][0, 0] == pytest.approx(1e-4)
    assert history["step_size"][0, -1] == pytest.approx(
        float(run.sample_stats["step_size"][0, 0]), rel=0.3
    )
    assert float(history["acceptance_rate"][:, -200:].mean()) == pytest.approx(0.85, abs=0.05)


def test_a_given_sampler_is_kept_as_it_is():
    sampler = amagold.amagold(
        amagold.models.double_well(), step_size=0.123, gradient=amagold.gradients.noisy(1.0)
    )
    run = amagold.sample(sampler, 100, 100, 2, init=0.0, progress=False)
    np.testing.assert_array_equal(run.sample_stats["step_size"], np.float32(0.123))
    np.testing.assert_array_equal(run.sample_stats["n_steps"], 10)
    assert "Warm-up adapts nothing" in str(run.plan)


@pytest.mark.slow
def test_descent_reaches_the_mode_first():
    target, init, _ = PROBLEMS["heart"]
    sampler = amagold.hmc(target, step_size=1e-5, num_steps=1)
    warmup = amagold.Warmup(
        sgd=amagold.SgdBurnIn(num_epochs=30, learning_rate=0.05, momentum=0.9, batch_size=30)
    )
    run = amagold.sample(sampler, 10, 0, 2, init=init + 3.0, progress=False, warmup=warmup)
    start = {"theta": run.posterior["theta"].values[:, 0]}
    best = find_mode(target, init).position
    for theta in start["theta"]:
        assert amagold.energy_difference(target, theta, best) < 15.0
        assert amagold.energy_difference(target, init + 3.0, best) > 100.0


def test_nothing_compiles_again_while_the_step_size_moves():
    from amagold.runner._placed_chains import _run_chunk

    acceptance_after("double well", 0.01, 0.85)
    before = _run_chunk.compiled()._cache_size()
    acceptance_after("double well", 0.2, 0.7)
    assert _run_chunk.compiled()._cache_size() == before


@pytest.mark.parametrize("num_warmup", [1, 3, 19, 20, 37, 1_000, 1_010])
@pytest.mark.parametrize("adapts_mass", [True, False])
def test_stages_cover_the_warm_up(num_warmup, adapts_mass):
    stages = schedule.make_schedule(num_warmup, adapts_step=True, adapts_mass=adapts_mass)
    assert [stage.start for stage in stages] == [0, *(stage.stop for stage in stages[:-1])]
    assert stages[-1].stop == num_warmup
    assert not stages[-1].collects or len(stages) == 1
    assert 1 <= schedule.block_length(num_warmup, 7) <= 7


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target_acceptance": 1.0}, "target_acceptance must be below 1, got 1"),
        ({"target_acceptance": 0.0}, "target_acceptance must be a finite number above 0, got 0"),
        ({"mass": "full"}, "mass must be 'diagonal', 'dense' or None in Warmup, got 'full'"),
        ({"sgd": 3}, "sgd must be an amagold.SgdBurnIn, got int"),
    ],
)
def test_bad_settings_are_named(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        amagold.Warmup(**options)


def test_what_cannot_be_adapted_is_said():
    biased = amagold.sghmc(amagold.models.double_well(), step_size=0.1)
    with pytest.raises(
        ValueError, match="target_acceptance needs a sampler with a test, got a biased one"
    ):
        amagold.sample(biased, 10, 10, init=0.0, progress=False, warmup=amagold.Warmup(0.8))
    with pytest.raises(ValueError, match="momentum must be below 1"):
        amagold.SgdBurnIn(momentum=1.0)
    with pytest.raises(ValueError, match="sgd needs a target with data"):
        amagold.sample(
            biased, 10, 10, init=0.0, progress=False, warmup=amagold.Warmup(sgd=amagold.SgdBurnIn())
        )
