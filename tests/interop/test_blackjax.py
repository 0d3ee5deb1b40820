"""Our samplers in BlackJAX's drivers, and its tuning for ours."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from false_alarms import threshold

import amagold
from amagold_lab.bench.effective_sample_size import differences

blackjax = pytest.importorskip("blackjax")

_random = np.random.default_rng(0)
X = _random.normal(size=(40, 2)).astype(np.float32)
Y = (_random.random(40) < 0.5).astype(np.float32)


def posterior():
    return amagold.models.logistic(X, Y, prior_scale=1.0, intercept=False)


def test_the_top_level_shape():
    sampler = amagold.hmc(posterior(), step_size=0.3)
    algorithm = amagold.interop.blackjax.as_top_level_api(sampler)
    assert isinstance(algorithm, blackjax.base.SamplingAlgorithm)
    final, positions = blackjax.util.run_inference_algorithm(
        jax.random.key(0),
        algorithm,
        20,
        initial_position=jnp.zeros(2),
        transform=lambda state, info: state.position,
    )
    own, _ = blackjax.util.run_inference_algorithm(
        jax.random.key(0), sampler, 20, initial_position=jnp.zeros(2)
    )
    np.testing.assert_array_equal(final.position, own.position)
    assert len(np.unique(np.asarray(positions), axis=0)) > 5


@pytest.mark.slow
@pytest.mark.parametrize(
    "is_diagonal",
    [pytest.param(True, marks=pytest.mark.slow, id="diagonal"), pytest.param(False, id="dense")],
)
def test_what_it_tunes_suits_ours(is_diagonal):
    target = posterior()
    log_density = amagold.interop.blackjax.log_density_of(target)
    tuning = blackjax.window_adaptation(
        blackjax.hmc, log_density, is_mass_matrix_diagonal=is_diagonal, num_integration_steps=5
    )
    (_, parameters), _ = tuning.run(jax.random.key(0), jnp.zeros(2), 300)
    settings = amagold.interop.blackjax.settings_from(parameters)
    inverse = np.asarray(parameters["inverse_mass_matrix"])
    wanted = 1.0 / inverse if is_diagonal else np.linalg.inv(inverse)
    np.testing.assert_allclose(settings["mass"], wanted, rtol=1e-3, atol=1e-3)
    starts = jnp.zeros((16, 2))
    ours = amagold.run_chains(
        amagold.hmc(target, num_steps=5, **settings), jax.random.key(1), starts, 400, num_burn_in=50
    )
    assert 0.6 < ours.info.acceptance_rate.mean() < 0.99

    algorithm = blackjax.hmc(log_density, num_integration_steps=5, **_of_hmc(parameters))

    def chain(key):
        return blackjax.util.run_inference_algorithm(
            key,
            algorithm,
            450,
            initial_position=jnp.zeros(2),
            transform=lambda state, info: state.position,
        )[1]

    theirs = np.asarray(jax.vmap(chain)(jax.random.split(jax.random.key(2), 16)))[:, 50:]
    found = np.abs(differences(np.asarray(ours.position), theirs))
    assert np.max(found) < threshold(found.size)


def _of_hmc(parameters):
    return {name: parameters[name] for name in ("step_size", "inverse_mass_matrix")}


def test_densities_are_the_targets_own():
    target, at = posterior(), jnp.array([0.3, -0.2])
    log_density = amagold.interop.blackjax.log_density_of(target)
    found = log_density(at) - log_density(jnp.zeros(2))
    wanted = -amagold.energy_difference(target, at, jnp.zeros(2))
    np.testing.assert_allclose(found, wanted, rtol=1e-4)
    well = amagold.models.double_well()
    assert amagold.interop.blackjax.log_density_of(well)(0.5) == well.log_density(0.5)


def test_other_parameters_are_refused():
    with pytest.raises(ValueError, match="got no inverse_mass_matrix"):
        amagold.interop.blackjax.settings_from({"step_size": 0.1})
    with pytest.raises(ValueError, match="vector or a matrix, got shape \\(\\)"):
        amagold.interop.blackjax.settings_from({"step_size": 0.1, "inverse_mass_matrix": 1.0})
    with pytest.raises(AttributeError, match="pymc"):
        amagold.interop.pymc  # noqa: B018
