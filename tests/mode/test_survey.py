"""Modes are found from far apart, kept apart and weighed, and nothing that was found is hidden."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import amagold
from amagold.mode._mode_search import find_mode
from amagold.mode._newton import descend
from amagold.mode._survey import survey
from amagold.mode._wide_positions import wide_positions


def earnings(num_rows=1192):
    """A regression in raw units with an unknown noise scale, from zeros: residuals of 10^4 where
    the scale says one.
    """
    generator = np.random.default_rng(1)
    height = generator.normal(66.9, 3.83, num_rows).round()
    earned = -85000.0 + 1595.0 * height + generator.normal(0.0, 18865.0, num_rows)

    def log_likelihood(at, row):
        residual = (row["earned"] - at["beta"][0] - at["beta"][1] * row["height"]) * jnp.exp(
            -at["log_sigma"]
        )
        return -0.5 * residual**2 - at["log_sigma"]

    data = {"earned": earned.astype(np.float32), "height": height.astype(np.float32)}
    init = {"beta": np.zeros(2), "log_sigma": 0.0}
    predictors = np.column_stack([np.ones(num_rows), height])
    best = np.linalg.lstsq(predictors, earned, rcond=None)[0]
    left = earned - predictors @ best
    errors = np.sqrt(
        left @ left / (num_rows - 2) * np.diag(np.linalg.inv(predictors.T @ predictors))
    )
    return (
        amagold.Posterior(log_likelihood, lambda at: 0.0 * at["log_sigma"], data, init=init),
        best,
        errors,
    )


def two_gaussians(first=0.7, apart=4.0, size=2):
    def log_density(at):
        near = jnp.log(first) - 0.5 * jnp.sum((at + apart) ** 2)
        return jnp.logaddexp(near, jnp.log(1.0 - first) - 0.5 * jnp.sum((at - apart) ** 2))

    return amagold.Density(log_density, init=np.zeros(size))


def spike_and_slab():
    """5 % N(0, 0.1^2) and 95 % N(0, 10^2) in five dimensions: every slope leads to the spike."""

    def log_density(at):
        square = jnp.sum(at**2)
        spike = jnp.log(0.05) - 5.0 * jnp.log(0.1) - 0.5 * square / 0.01
        return jnp.logaddexp(spike, jnp.log(0.95) - 5.0 * jnp.log(10.0) - 0.5 * square / 100.0)

    return amagold.Density(log_density, init=np.zeros(5))


def two_clumps(num_rows=20, upper=0.5, gap=10.0):
    """Outcomes that agree with each other in two places, and noise whose tails let either be
    outliers.
    """
    generator = np.random.default_rng(4)
    above = int(num_rows * upper)
    y = np.concatenate(
        [generator.normal(0.0, 0.5, num_rows - above), generator.normal(gap, 0.5, above)]
    )
    settings = dict(prior_scale=10.0, degrees_of_freedom=1.0, noise_scale=1.0)
    grid = np.linspace(-30.0, 40.0, 200_001)
    log_density = -0.5 * (grid / 10.0) ** 2 - np.sum(
        [np.log1p((each - grid) ** 2) for each in y], axis=0
    )
    weights = np.exp(log_density - log_density.max())
    mean = float(np.sum(weights * grid) / weights.sum())
    return amagold.models.robust(np.zeros((num_rows, 0)), y, **settings), mean


def test_newton_finds_a_noise_scale_that_is_far_off():
    target, best, errors = earnings()
    found = find_mode(target, target.init)
    assert found.is_converged
    assert np.all(np.abs(np.asarray(found.position["beta"]) - best) < 0.05 * errors)


def test_a_search_leaves_a_saddle():
    """The gradient is zero at the start, which is no mode."""
    found = descend(amagold.Density(lambda at: -0.25 * (at**2 - 4.0) ** 2), jnp.float32(0.0))
    assert found.is_converged
    assert abs(abs(float(found.end.position)) - 2.0) < 1e-2


def test_a_search_stops_on_the_way():
    """The place where it came near is outside the mode and inside the bulk."""
    found = descend(amagold.Density(lambda at: -0.5 * jnp.sum(at**2)), jnp.full(4, 50.0))
    assert np.sum(np.asarray(found.near.position) ** 2) == pytest.approx(16.0, rel=1e-3)
    assert np.sum(np.asarray(found.end.position) ** 2) < 1e-3


def test_modes_that_differ_are_kept_apart_and_weighed():
    found = survey(two_gaussians(), np.zeros(2), jax.random.key(0))
    assert found.shares == pytest.approx([0.7, 0.3], abs=0.02)
    np.testing.assert_allclose(found.mode.position, -4.0, atol=0.05)
    assert not found.has_one_region
    starts = {
        round(float(np.sign(np.asarray(region.position).sum()))) for region in found.regions[:4]
    }
    assert starts == {-1, 1}


def test_mass_that_no_mode_explains_is_seen():
    found = survey(spike_and_slab(), np.zeros(5), jax.random.key(0))
    assert len(found.shares) == 1
    assert not found.is_explained
    assert not found.has_one_region
    spread = [
        float(np.sqrt(np.mean(np.asarray(region.position) ** 2))) for region in found.regions[:4]
    ]
    assert min(spread) < 0.2
    assert max(spread) > 1.0


def test_one_gaussian_is_one_region():
    target = amagold.Density(
        lambda at: -0.5 * at @ jnp.array([[2.0, 1.0], [1.0, 3.0]]) @ at, init=np.ones(2)
    )
    found = survey(target, target.init, jax.random.key(0))
    assert found.has_one_region
    assert found.shares == [1.0]


def test_wide_positions_are_as_wide_as_the_prior():
    prior = lambda at: -0.5 * jnp.sum(((at - 3.0) / jnp.array([1.0, 50.0])) ** 2)  # noqa: E731
    target = amagold.Posterior(
        lambda at, row: row * at[0], prior, np.ones(3, np.float32), init=np.zeros(2)
    )
    found = np.array(wide_positions(target, np.zeros(2), jax.random.key(0), 64).positions)
    assert np.std(found[::2] - 3.0, axis=0) == pytest.approx([1.0, 50.0], rel=0.2)
    inside = amagold.Density(
        lambda at: -jnp.sum(at), domain=lambda at: jnp.all(at > 0), init=np.full(2, 0.5)
    )
    assert np.all(
        np.array(wide_positions(inside, inside.init, jax.random.key(0), 16).positions) > 0
    )


@pytest.mark.slow
def test_the_larger_clump_is_found_from_the_smaller():
    """The search from zero ends at the smaller clump, which holds next to nothing at this size."""
    target, mean = two_clumps(1000, 0.51, 12.0)
    assert mean > 11.0
    found = survey(target, target.init, jax.random.key(0))
    assert len(found.shares) == 2
    assert found.has_one_region
    assert float(found.mode.position[0]) == pytest.approx(mean, abs=0.05)


@pytest.mark.slow
def test_modes_of_many_parameters_are_kept_apart():
    """Where no Hessian is taken: from `init` alone one of the two would be found."""
    target = two_gaussians(size=300)
    found = survey(target, target.init, jax.random.key(0))
    np.testing.assert_allclose(found.shares, [0.7, 0.3], atol=0.05)
    assert not found.has_one_region
    assert sorted(float(np.sign(region.center[0])) for region in found.regions) == [-1.0, 1.0]
    alone = amagold.Density(lambda at: -0.5 * jnp.sum(at**2), init=np.zeros(300))
    assert survey(alone, alone.init, jax.random.key(0)).has_one_region


def sampled(target, seed=0, **settings):
    with pytest.warns(amagold.SamplingWarning):
        return amagold.sample(target, seed=seed, progress=False, **settings)


@pytest.mark.slow
def test_chains_start_at_both_modes_and_r_hat_sees_it():
    run = sampled(two_gaussians(), num_samples=200, num_warmup=200)
    means = run.posterior["theta"].mean(["draw", "theta_dim_0"]).to_numpy()
    assert means.min() < -3.0
    assert means.max() > 3.0
    assert any(
        sentence.startswith("R-hat") and "several modes" in sentence for sentence in run.warnings
    )
    assert "2 modes were found" in str(run.plan)
    assert run.plan.integrator == "leapfrog"


@pytest.mark.slow
@pytest.mark.parametrize("target", [spike_and_slab(), two_clumps()[0]], ids=["spike", "clumps"])
@pytest.mark.parametrize("seed", range(4))
def test_hidden_mass_is_never_silent(target, seed):
    assert any(sentence.startswith("R-hat") for sentence in sampled(target, seed).warnings)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("target", "words"),
    [
        (two_gaussians(), "several modes"),
        pytest.param(spike_and_slab(), "hidden mass", marks=pytest.mark.slow),
    ],
)
def test_a_given_start_does_not_hide_what_was_found(target, words):
    """All chains begin at one place, so that they agree whatever lies elsewhere."""
    start = np.full(target.init.shape, -4.0 if words == "several modes" else 0.0, np.float32)
    run = sampled(target, init=start, num_samples=50, num_warmup=50)
    assert any(sentence.startswith(words) for sentence in run.warnings)


@pytest.mark.slow
def test_one_chain_is_told_of_the_modes_it_does_not_see():
    run = sampled(two_gaussians(), num_chains=1, num_samples=100, num_warmup=100)
    assert any(sentence.startswith("several modes") for sentence in run.warnings)


@pytest.mark.slow
def test_a_far_start_comes_in_on_a_plan_with_control_variates():
    """Four hundred standard deviations out, where gradients about the mode know nothing."""
    generator = np.random.default_rng(0)
    x = generator.normal(size=(2000, 2)).astype(np.float32)
    y = (generator.random(2000) < 1.0 / (1.0 + np.exp(-x @ [1.0, -1.0]))).astype(np.float32)
    log_likelihood = lambda at, row: row[1] * (row[0] @ at) - jax.nn.softplus(row[0] @ at)  # noqa: E731
    target = amagold.Posterior(
        log_likelihood, lambda at: -0.005 * jnp.sum(at**2), (x, y), init=np.zeros(2)
    )
    far = np.array([[1.0, -1.0], [25.0, 25.0], [-25.0, 0.0], [0.0, 20.0]], np.float32)
    run = amagold.sample(target, 200, 200, init_per_chain=far, progress=False)
    assert run.plan.gradient == "control variate"
    assert np.all(run.sample_stats["acceptance_rate"].mean("draw") > 0.3)
    assert not any(sentence.startswith(("R-hat", "frozen")) for sentence in run.warnings)
