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


def own_algorithms():
    ours = amagold.interop.blackjax
    return {
        "hmc": (ours.hmc, amagold.hmc, {"num_steps": 5}),
        "l2mc": (ours.l2mc, amagold.l2mc, {"num_steps": 5, "friction": 0.5}),
    }


@pytest.mark.parametrize("is_diagonal", [True, False], ids=["diagonal", "dense"])
@pytest.mark.parametrize("name", ["hmc", "l2mc"])
def test_algorithms_step_as_samplers_do(name, is_diagonal):
    algorithm, sampler, settings = own_algorithms()[name]
    log_density = amagold.interop.blackjax.log_density_of(posterior())
    mass = np.array([4.0, 9.0]) if is_diagonal else np.array([[4.0, 1.0], [1.0, 9.0]])
    inverse = jnp.float32(1.0 / mass if is_diagonal else np.linalg.inv(mass))
    one = algorithm(log_density, 0.3, inverse, **settings)
    assert isinstance(one, blackjax.base.SamplingAlgorithm)
    state, info = one.step(jax.random.key(1), one.init(jnp.zeros(2)))
    np.testing.assert_allclose(state.logdensity_grad, jax.grad(log_density)(state.position))
    if is_diagonal:
        other = sampler(amagold.Density(log_density), step_size=0.3, mass=mass, **settings)
        wanted, told = other.step(jax.random.key(1), other.init(jnp.zeros(2)))
        np.testing.assert_allclose(state.position, wanted.position, rtol=1e-5)
        np.testing.assert_allclose(info.acceptance_rate, told.acceptance_rate, rtol=1e-5)


@pytest.mark.parametrize("name", ["hmc", pytest.param("l2mc", marks=pytest.mark.slow)])
def test_its_adaptation_tunes_ours(name):
    algorithm, _, settings = own_algorithms()[name]
    log_density = amagold.interop.blackjax.log_density_of(posterior())
    tuning = blackjax.window_adaptation(algorithm, log_density, **settings)
    (state, parameters), told = tuning.run(jax.random.key(0), jnp.zeros(2), 300)
    assert 0.6 < told.info.acceptance_rate[-50:].mean() < 0.95
    _, rates = blackjax.util.run_inference_algorithm(
        jax.random.key(1),
        algorithm(log_density, **parameters),
        300,
        initial_state=state,
        transform=lambda state, info: info.acceptance_rate,
    )
    assert 0.6 < rates.mean() < 0.99


@pytest.mark.slow
@pytest.mark.parametrize("is_diagonal", [True, False], ids=["diagonal", "dense"])
@pytest.mark.parametrize("name", ["hmc", "l2mc"])
def test_tuned_algorithms_have_the_draws_of_hmc(name, is_diagonal):
    algorithm, _, settings = own_algorithms()[name]
    log_density = amagold.interop.blackjax.log_density_of(posterior())
    tuning = blackjax.window_adaptation(
        algorithm, log_density, is_mass_matrix_diagonal=is_diagonal, **settings
    )
    (state, parameters), _ = tuning.run(jax.random.key(0), jnp.zeros(2), 300)
    tuned = _of_hmc(parameters)
    ours = draws_of(algorithm(log_density, **parameters), state, 1)
    theirs = blackjax.hmc(log_density, num_integration_steps=5, **tuned)
    found = np.abs(differences(ours, draws_of(theirs, theirs.init(state.position), 2)))
    assert np.max(found) < threshold(4 * found.size)


def draws_of(algorithm, state, seed):
    def chain(key):
        return blackjax.util.run_inference_algorithm(
            key,
            algorithm,
            450,
            initial_state=state,
            transform=lambda state, info: state.position,
        )[1]

    return np.asarray(jax.vmap(chain)(jax.random.split(jax.random.key(seed), 16)))[:, 50:]


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
    with pytest.raises(ValueError, match="square matrix and step_size one number"):
        amagold.interop.blackjax.settings_from({"step_size": 0.1, "inverse_mass_matrix": 1.0})
    for many in (jnp.ones((3, 2)), jnp.ones((2, 2)), jnp.ones((3, 2, 2))):
        with pytest.raises(ValueError, match="tune one chain, or choose one chain's parameters"):
            amagold.interop.blackjax.settings_from(
                {"step_size": jnp.ones(len(many)), "inverse_mass_matrix": many}
            )
    with pytest.raises(ValueError, match="positive definite, got a singular matrix"):
        amagold.interop.blackjax.settings_from(
            {"step_size": 0.1, "inverse_mass_matrix": np.ones((2, 2))}
        )
    with pytest.raises(ValueError, match="got values that JAX traces"):
        jax.jit(amagold.interop.blackjax.settings_from)(
            {"step_size": 0.1, "inverse_mass_matrix": jnp.ones(2)}
        )
    low_rank = blackjax.mcmc.metrics.LowRankInverseMassMatrix(
        jnp.ones(3), jnp.eye(3)[:, :1], jnp.ones(1)
    )
    parameters = {"step_size": 0.1, "inverse_mass_matrix": low_rank}
    with pytest.raises(ValueError, match="got LowRankInverseMassMatrix; tune with"):
        amagold.interop.blackjax.settings_from(parameters)
    algorithm = amagold.interop.blackjax.hmc(lambda x: -jnp.sum(x**2), **parameters)
    with pytest.raises(ValueError, match="got LowRankInverseMassMatrix; tune with"):
        algorithm.step(jax.random.key(0), algorithm.init(jnp.zeros(3)))
    with pytest.raises(AttributeError, match="pymc"):
        amagold.interop.pymc  # noqa: B018
