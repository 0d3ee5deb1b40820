"""The mass in the shape of an arrow is the dense mass of the same matrix, and is made by a word for
a model with groups; draws stay exact in its units.
"""

import dataclasses
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_effects import effect_features, exact_effects, mixed_target
from false_alarms import PLANTED, worst
from leveled_posteriors import one_factor

import amagold
from amagold import models
from amagold.adaptation._mass_settings import log_scale, prepare_mass
from amagold.core import trees
from amagold.mode._arrow import arrow_mode, layout_of
from amagold.mode._arrow_curvature import arrow_curvature, effects_curvature
from amagold.mode._effect_mode import find_reference
from amagold.trajectory._arrow_mass import ArrowMass, arrow_mass
from amagold.trajectory._mass_matrix import as_mass

LEVELS, EFFECTS, BORDER, ALONE = 4, 2, 3, 2
IN_ORDER = (("blocks", 8), ("border", 3), ("alone", 2))
SCATTERED = (("border", 1), ("alone", 2), ("blocks", 8), ("border", 2))
LIKE = {"a": np.zeros((), np.float32), "b": np.zeros((5, 2), np.float32), "c": np.zeros(2)}


@cache
def parts():
    """D, B^T, A and the rest, of a matrix that is positive definite."""
    generator = np.random.default_rng(3)
    factor = generator.normal(size=(13, 13))
    matrix = factor @ factor.T + 13.0 * np.eye(13)
    blocks = np.stack([matrix[2 * g : 2 * g + 2, 2 * g : 2 * g + 2] for g in range(LEVELS)])
    return (
        blocks,
        matrix[:8, 8:11].reshape(LEVELS, EFFECTS, BORDER),
        matrix[8:11, 8:11],
        np.array([2.0, 0.5]),
    )


def whole(sections):
    """The same as one matrix, in the order of the sections."""
    blocks, border, corner, alone = parts()
    matrix = np.zeros((13, 13))
    for g in range(LEVELS):
        matrix[2 * g : 2 * g + 2, 2 * g : 2 * g + 2] = blocks[g]
    matrix[:8, 8:11], matrix[8:11, 8:11] = border.reshape(8, BORDER), corner
    matrix[8:11, :8] = matrix[:8, 8:11].T
    matrix[[11, 12], [11, 12]] = alone
    places = {"blocks": list(range(8)), "border": [8, 9, 10], "alone": [11, 12]}
    order = [places[kind].pop(0) for kind, count in sections for _ in range(count)]
    return matrix[np.ix_(order, order)]


def arrow(sections=SCATTERED, kind=ArrowMass):
    return kind(**vars(arrow_mass(sections, *parts())))


def positions(count, seed=0):
    numbers = np.random.default_rng(seed).normal(size=(count, 13)).astype(np.float32)
    like = jax.tree.map(jnp.float32, LIKE)
    return jax.vmap(lambda flat: trees.unflatten_like(flat, like))(jnp.asarray(numbers))


def numbers(mapped):
    return np.asarray(jax.vmap(trees.flatten)(mapped), np.float64)


def test_with_blocks_first_it_is_the_dense_mass_to_rounding():
    some, dense, mass = positions(5), as_mass(whole(IN_ORDER)), arrow(IN_ORDER)
    for name in ("force", "velocity", "unwhiten"):
        found, wanted = (numbers(jax.vmap(getattr(each, name))(some)) for each in (mass, dense))
        np.testing.assert_allclose(found, wanted, rtol=2e-5, atol=2e-6)
    assert abs(log_scale(mass) - log_scale(dense)) < 1e-6


def test_in_any_order_it_is_a_root_of_the_same_matrix():
    some, mass, matrix = positions(5), arrow(), whole(SCATTERED)
    inverse = np.linalg.inv(matrix)
    # r^T M^-1 r, twice the kinetic energy; W^T W = M^-1; W^-T W^T = I
    energy = np.sum(numbers(jax.vmap(mass.force)(some)) ** 2, axis=1)
    flat = numbers(some)
    np.testing.assert_allclose(energy, np.einsum("ni,ij,nj->n", flat, inverse, flat), rtol=1e-5)
    through = numbers(jax.vmap(lambda x: mass.velocity(mass.force(x)))(some))
    np.testing.assert_allclose(through, flat @ inverse, rtol=1e-4, atol=1e-6)
    back = numbers(jax.vmap(lambda x: mass.unwhiten(mass.velocity(x)))(some))
    np.testing.assert_allclose(back, flat, atol=2e-6)
    np.testing.assert_allclose(mass.variances(), np.diagonal(inverse), rtol=1e-5)


@trees.record()
class BorderForgotten(ArrowMass):
    """Bug: levels do not move along with the border, though they are pushed by it."""

    def velocity(self, momentum):
        return dataclasses.replace(
            arrow(), sections=self.sections, shifts=jnp.zeros_like(self.shifts)
        ).velocity(momentum)


def velocities_off(mass):
    """How far velocities of standard momenta are from N(0, M^-1), in their second moments."""
    drawn = numbers(jax.vmap(mass.velocity)(positions(20_000, seed=1)))
    scales = np.sqrt(np.diagonal(np.linalg.inv(whole(SCATTERED))))
    expected = np.linalg.inv(whole(SCATTERED)) / np.outer(scales, scales)
    products = (drawn[:, :, None] * drawn[:, None, :]) / np.outer(scales, scales)
    upper = np.triu_indices(13)
    return worst(products[:, *upper], expected[upper])


def test_velocities_have_the_covariance_of_the_inverse():
    assert velocities_off(arrow()) < 1.0
    assert velocities_off(arrow(kind=BorderForgotten)) > PLANTED


@cache
def mixed_models():
    generator = np.random.default_rng(1)
    x = generator.normal(size=(300, 2))
    g, h = generator.integers(0, 12, 300), generator.integers(0, 3, 300)
    z = 0.4 * x[:, 0] + generator.normal(size=12)[g] + generator.normal(size=3)[h]
    columns = np.column_stack([np.ones(300), x[:, 1]])
    return {
        "linear": models.mixed(x, z + generator.normal(size=300), {"1|g": g}, "linear"),
        "crossed": models.mixed(x, generator.poisson(np.exp(0.3 * z)), {"h": h, "g": g}, "poisson"),
        "slopes": models.mixed(x, z > 0.0, {"g": models.Group(g, columns=columns)}),
    }


@pytest.mark.parametrize(
    "name",
    ["crossed", *(pytest.param(each, marks=pytest.mark.slow) for each in ("linear", "slopes"))],
)
def test_it_is_the_mean_curvature_of_a_mixed_model(name):
    """The Hessian of the whole energy, averaged over effects about the reference."""
    target = mixed_models()[name]
    sums = find_reference(target)
    found = effects_curvature(target, sums)
    matrix = matrix_of(arrow_mass(*found[:5]))
    at = {key: jnp.asarray(values) for key, values in sums.position.items()}
    hessian = jax.jit(jax.hessian(lambda flat: _energy(target, trees.unflatten_like(flat, at))))
    there = np.asarray(hessian(trees.flatten(at)), np.float64)
    is_scale = np.concatenate(
        [np.full(np.size(at[key]), key.endswith(("_sigma", "_correlation"))) for key in sorted(at)]
    )
    is_noise = np.concatenate([np.full(np.size(at[key]), key == "sigma") for key in sorted(at)])
    rest = ~is_scale & ~is_noise
    scale = np.sqrt(np.outer(np.diagonal(matrix), np.diagonal(matrix)))
    # effects enter as they are, so that all but scales with themselves is the Hessian there
    for one, other in ((rest, rest), (rest, is_scale)):
        np.testing.assert_allclose(
            (matrix / scale)[np.ix_(one, other)], (there / scale)[np.ix_(one, other)], atol=2e-3
        )
    # and those have more of what effects vary by
    assert (np.diagonal(matrix)[is_scale] > np.diagonal(there)[is_scale]).all()
    if is_noise.any():
        assert abs(np.diagonal(matrix)[is_noise][0] / np.diagonal(there)[is_noise][0] - 1.0) < 0.1


def _energy(target, position):
    rows = target.examples.arrays
    each = jax.vmap(target.log_likelihood, (None, 0))(position, rows)
    return -jnp.sum(each) - target.log_prior(position)


def matrix_of(mass):
    """W^T W, inverted."""
    rows = jax.vmap(mass.velocity)(jnp.eye(mass.num_parameters))
    root = np.linalg.inv(np.asarray(rows, np.float64))
    return root @ root.T


def test_many_levels_of_another_factor_stand_alone(monkeypatch):
    target = mixed_models()["crossed"]
    whole = arrow_curvature(target)
    monkeypatch.setattr("amagold.mode._arrow_curvature.MOST_BORDER", 6)
    apart = arrow_curvature(target)
    assert dict(whole.sections)["blocks"] == dict(apart.sections)["blocks"] == 12
    assert (len(whole.corner), len(whole.alone)) == (8, 0)
    assert (len(apart.corner), len(apart.alone)) == (4, 4)
    assert (apart.alone > 0.0).all()


@pytest.mark.slow
def test_a_regression_with_a_factor_has_one_too():
    """The Hessian at its mode."""
    target = one_factor()
    mass = amagold.hmc(target, step_size=0.5, mass="arrow").proposal.mass
    at = arrow_mode(target, target.bounds, layout_of(target, target.bounds)).position
    mode = jnp.asarray(at, jnp.float32)
    hessian = np.asarray(jax.hessian(lambda at: _energy(target, at))(mode), np.float64)
    np.testing.assert_allclose(matrix_of(mass), hessian, rtol=1e-3)


def with_arrow(**settings):
    return amagold.l2mc(
        mixed_target("logistic"), step_size=0.5, friction=0.3, num_steps=4, mass="arrow", **settings
    )


@pytest.mark.slow
@pytest.mark.parametrize("resample", [pytest.param(True, marks=pytest.mark.slow), False])
def test_exact_draws_of_a_mixed_model_stay_exact(resample):
    draws = exact_effects("logistic", 3_000)
    sampler = with_arrow(resample_momentum=resample)
    found, info = _moved(sampler, draws, jax.random.key(2))
    assert 0.3 < float(info.acceptance_rate.mean()) < 0.99
    assert worst(effect_features(found.position) - effect_features(draws)) < 1.0


@jax.jit
def _moved(sampler, draws, key):
    keys = jax.random.split(key, len(draws["theta"]))
    states = jax.vmap(sampler.init)(draws, keys)

    def transition(states, key):
        return jax.vmap(sampler.step)(jax.random.split(key, len(keys)), states)

    return jax.lax.scan(transition, states, jax.random.split(key, 4))


def test_new_numbers_compile_nothing():
    traces = 0

    @jax.jit
    def run(sampler, key, state):
        nonlocal traces
        traces += 1
        return sampler.step(key, state)

    sampler = with_arrow()
    state = sampler.init(mixed_target("logistic").init)
    for by in (1.0, 1.5, 2.0):
        other = jax.tree.map(lambda leaf, by=by: by * leaf, sampler.proposal.mass)
        run(sampler.with_settings(mass=other), jax.random.key(0), state)
    assert traces == 1


@pytest.mark.parametrize("kind", ["diagonal", "dense"])
def test_warmup_makes_another_mass_of_it(kind):
    mass = arrow(IN_ORDER)
    found = prepare_mass(mass, kind, jnp.zeros(13))
    some = jnp.asarray(np.random.default_rng(0).normal(size=13), jnp.float32)
    wanted = np.linalg.inv(whole(IN_ORDER))
    if kind == "diagonal":
        wanted = np.diag(np.diagonal(wanted))
    np.testing.assert_allclose(found.velocity(found.force(some)), wanted @ some, rtol=1e-4)


def test_what_is_no_arrow_is_refused():
    with pytest.raises(ValueError, match="mass must be a number, a diagonal, a matrix or 'arrow'"):
        amagold.hmc(mixed_target("logistic"), step_size=0.1, mass="diagonal")
    with pytest.raises(ValueError, match="mass='arrow' needs a model with groups"):
        amagold.hmc(models.double_well(), step_size=0.1, mass="arrow")
    with pytest.raises(ValueError, match="an arrow over the 3 parameters of this position, got"):
        amagold.hmc(amagold.Density(jnp.sum), step_size=0.1, mass=arrow()).init(jnp.zeros(3))
    with pytest.raises(ValueError, match="sections must name 8 parameters of kind 'blocks'"):
        arrow_mass((("blocks", 7), ("border", 3), ("alone", 2)), *parts())


@pytest.mark.slow
def test_a_run_says_so_and_goes_on_to_the_bit(tmp_path):
    settings = {
        "num_samples": 40,
        "num_warmup": 40,
        "num_chains": 2,
        "progress": False,
        "init": mixed_target("logistic").transform(mixed_target("logistic").init),
        "warmup": amagold.Warmup(target_acceptance=0.8),
    }
    with pytest.warns(amagold.SamplingWarning):
        run = amagold.sample(with_arrow(), **settings)
    assert "in units of an arrow mass" in str(run.plan)
    with pytest.warns(amagold.SamplingWarning, match="no draws were kept"):
        amagold.sample(with_arrow(), **settings, store=tmp_path / "run.zarr", max_time=1e-6)
    with pytest.warns(amagold.SamplingWarning):
        resumed = amagold.resume(tmp_path / "run.zarr", with_arrow(), progress=False)
    for name in run.posterior:
        np.testing.assert_array_equal(
            resumed.posterior[name].to_numpy(), run.posterior[name].to_numpy()
        )
    with pytest.raises(ValueError, match="must be the sampler that began this run"):
        amagold.resume(
            tmp_path / "run.zarr",
            amagold.l2mc(
                mixed_target("logistic"), step_size=0.5, friction=0.3, num_steps=4, mass=1.0
            ),
            progress=False,
        )
