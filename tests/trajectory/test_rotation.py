"""Steps that follow a Gaussian's own motion: what they are on a Gaussian, near one, and when a plan
takes them.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from doubles import some_of
from false_alarms import worst

import amagold
from amagold import datasets, models
from amagold.adaptation import _block_adaptation as between_blocks, _window_adaptation as adapt
from amagold.mode._curvature import curvature_at
from amagold.mode._mode_search import find_mode
from amagold.models._log_sigmoid import log_sigmoid
from amagold.planning._discretisation import acceptance_from
from amagold.planning._non_gaussianity import measure_non_gaussianity
from amagold.planning._plan import NUM_PLACES
from amagold.planning._starts import disperse
from amagold.runner._chains import start_chains
from amagold.trajectory import Rotation
from amagold.trajectory._mass_matrix import DenseMass, as_mass

PRECISION = np.array([[4.0, 1.0, 0.0], [1.0, 3.0, -0.5], [0.0, -0.5, 0.2]])
MEAN = np.array([1.0, -2.0, 30.0], np.float32)


def gaussian():
    return amagold.Density(
        lambda x: -0.5 * (x - MEAN) @ jnp.asarray(PRECISION, jnp.float32) @ (x - MEAN),
        init=np.zeros(3, np.float32),
    )


def skewed():
    """Gumbel's: one tail light, the other heavy."""
    return amagold.Density(lambda x: jnp.sum(-x - jnp.exp(-x)), init=np.zeros(5, np.float32))


def heavy_tailed():
    return amagold.Density(
        lambda x: -2.5 * jnp.sum(jnp.log1p(x**2 / 4.0)), init=np.zeros(5, np.float32)
    )


def counts(num_examples=500):
    generator = np.random.default_rng(0)
    predictors = 0.5 * generator.normal(size=(num_examples, 5))
    return models.poisson(
        predictors,
        generator.poisson(np.exp(predictors @ (0.3 * generator.normal(size=5)))),
        prior_scale=1.0,
    )


def credit():
    table = datasets.australian()
    return models.logistic(table.X, table.y, prior_scale=1.0)


def laplace(target):
    mode = find_mode(target, target.init)
    return mode, curvature_at(target, mode.position)


def turning(target, num_steps, **settings):
    mode, curvature = laplace(target)
    proposal = Rotation(
        jnp.float32(0.5 * np.pi / num_steps), as_mass(curvature.matrix), mode.position, **settings
    )
    return amagold.amortized(target, proposal, num_steps), disperse(
        target, mode, curvature, 64, jax.random.key(1), scale=1.0
    )


@pytest.mark.few(1)
@pytest.mark.parametrize("num_steps", [1, 2, 5])
def test_a_quarter_turn_of_a_gaussian_is_an_independent_draw(num_steps):
    """Nothing is left for the gradient to do, so nothing is rejected, and where the chain was is
    forgotten.
    """
    sampler, starts = turning(gaussian(), num_steps)
    draws = amagold.run_chains(sampler, jax.random.key(2), starts, 500)
    # the mode is found to a thousandth
    np.testing.assert_allclose(draws.info.log_ratio, 0.0, atol=5e-3)
    whitened = (np.asarray(draws.position, np.float64) - MEAN) @ np.linalg.cholesky(PRECISION)
    later, earlier = whitened[:, 1:].reshape(-1, 3), whitened[:, :-1].reshape(-1, 3)
    products = np.einsum("ni,nj->nij", later, earlier).reshape(-1, 9)
    assert worst(np.concatenate([later, later**2 - 1.0, products], axis=1)) < 1.0


def test_an_eighth_of_a_turn_remembers_where_it_was():
    """The same test sees a turn that is not a quarter."""
    sampler, starts = turning(gaussian(), 1)
    shorter = dataclasses.replace(
        sampler, proposal=dataclasses.replace(sampler.proposal, step_size=jnp.float32(1.4))
    )
    draws = np.asarray(
        amagold.run_chains(shorter, jax.random.key(2), starts, 500).position, np.float64
    )
    whitened = (draws - MEAN) @ np.linalg.cholesky(PRECISION)
    assert worst((whitened[:, 1:] * whitened[:, :-1]).reshape(-1, 3)) > 1.5


def test_without_friction_no_noise_is_drawn():
    sampler, _ = turning(gaussian(), 2)
    assert jax.tree.leaves(sampler.draw(jax.random.key(0), jnp.zeros(3)).noise) == []
    with_friction, _ = turning(gaussian(), 2, friction=0.3)
    assert with_friction.draw(jax.random.key(0), jnp.zeros(3)).noise.shape == (2, 3)


def test_the_centre_must_be_like_the_position():
    with pytest.raises(ValueError, match="center must be like the position"):
        amagold.amortized(gaussian(), Rotation(1.0, as_mass(1.0), jnp.zeros(2))).init(jnp.zeros(3))


@pytest.mark.slow
@pytest.mark.parametrize("target", some_of([credit, counts], counts))
@pytest.mark.parametrize("num_steps", some_of([1, 2, 3], 2))
def test_the_predicted_acceptance_is_cautious(target, num_steps):
    """First-order theory, at places that nine in ten are better than: it must not promise more than
    comes, nor far less.
    """
    mode, curvature = laplace(target())
    places = disperse(target(), mode, curvature, NUM_PLACES, jax.random.key(0), scale=1.0)
    rest = measure_non_gaussianity(target(), mode.position, curvature.matrix, places)
    assert rest.is_small
    sampler, starts = turning(target(), num_steps)
    found = float(
        np.mean(
            amagold.run_chains(
                sampler, jax.random.key(3), starts, 300, num_burn_in=100
            ).info.acceptance_rate
        )
    )
    predicted = float(acceptance_from(rest.variance(num_steps)))
    assert predicted - 0.02 < found < predicted + 0.25


@pytest.mark.parametrize("target", [skewed, heavy_tailed])
def test_what_is_not_gaussian_is_seen(target):
    for seed in range(5):
        mode, curvature = laplace(target())
        places = disperse(target(), mode, curvature, NUM_PLACES, jax.random.key(seed), scale=1.0)
        assert not measure_non_gaussianity(
            target(), mode.position, curvature.matrix, places
        ).is_small


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
@pytest.mark.parametrize(
    ("target", "integrator"),
    some_of(
        [
            (credit, "rotation"),
            (counts, "rotation"),
            (skewed, "leapfrog"),
            (heavy_tailed, "leapfrog"),
        ],
        (counts, "rotation"),
    ),
)
def test_the_plan_turns_what_is_nearly_gaussian(target, integrator):
    run = amagold.sample(target(), num_samples=200, num_warmup=200, progress=False)
    assert run.plan.integrator == integrator
    assert ("quarter turn" in str(run.plan)) == (integrator == "rotation")
    assert (
        run.sampler.num_steps * float(run.sample_stats["step_size"][0, 0])
        <= (1.0 if integrator == "rotation" else 4.0) * 0.5 * np.pi + 1e-6
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
@pytest.mark.parametrize(
    "warmup",
    [
        amagold.Warmup(target_acceptance=0.75),
        pytest.param(amagold.Warmup(mass="dense"), marks=pytest.mark.slow),
    ],
)
def test_who_asks_for_adaptation_gets_it(warmup):
    """A quarter turn has no acceptance to aim for, and its mass is the curvature."""
    run = amagold.sample(counts(), num_samples=500, num_chains=8, warmup=warmup, progress=False)
    assert run.plan.integrator == "leapfrog"
    wanted = warmup.target_acceptance or run.plan.target_acceptance
    assert float(run.sample_stats["acceptance_rate"].mean()) == pytest.approx(wanted, abs=0.05)


@pytest.mark.slow
def test_chains_come_in_from_far_out():
    """On this skewed posterior a quarter turn from twice as far as the posterior is wide is hardly
    ever accepted.
    """
    run = amagold.sample(
        credit(), num_samples=200, num_warmup=500, num_chains=64, seed=1, progress=False
    )
    assert float(run.sample_stats["acceptance_rate"].mean("draw").min()) > 0.8
    assert not [sentence for sentence in run.warnings if "frozen" in sentence]


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_chains_in_another_well_are_accepted_too():
    """The plan sees one Gaussian; chains that start in the other need shorter turns, and the
    warm-up finds that.
    """
    wells = np.array([[0.0, 0.0], [30.0, 0.0]], np.float32)
    target = amagold.Density(
        lambda x: jax.nn.logsumexp(-0.5 * jnp.sum((x - wells) ** 2, axis=1)),
        init=np.array([-0.5, 0.2], np.float32),
    )
    starts = np.repeat(wells, [15, 1], axis=0)
    run = amagold.sample(
        target, num_samples=1000, num_chains=16, init_per_chain=starts, progress=False
    )
    assert run.plan.integrator == "rotation"
    assert not [sentence for sentence in run.warnings if "frozen" in sentence]
    assert float(run.sample_stats["acceptance_rate"].mean("draw").min()) > 0.5


def test_a_turn_that_is_too_much_is_shortened():
    """A plan that expected too much: the first block comes in by short turns, and the others find
    an angle that is accepted.
    """
    sampler, starts = turning(skewed(), 1)
    quarter = 0.5 * np.pi
    rules = adapt.Rules(
        1000, 0.8, None, quarter, longest_trajectory=quarter, begins_short=True, by_block=True
    )
    at = adapt.begin(sampler, start_chains(sampler, starts, jax.random.key(0)), rules)
    sizes, rates = [], []
    while at.done < rules.num_warmup:
        at, trace = between_blocks.next_block(at, jax.random.key(5), rules)
        sizes.append(float(trace.step_size[0]))
        rates.append(float(trace.acceptance_rate.mean()))
    assert sizes[0] == pytest.approx(quarter / 8.0)
    assert sizes[1] == pytest.approx(quarter)
    assert rates[1] < 0.65 < 0.72 < rates[-1]
    assert float(at.sampler.proposal.step_size) < 0.9 * quarter


def test_a_dense_mass_and_its_inverse():
    mass = as_mass(PRECISION)
    assert isinstance(mass, DenseMass)
    vector = jnp.array([0.3, -1.0, 2.0])
    np.testing.assert_allclose(mass.unwhiten(mass.velocity(vector)), vector, rtol=1e-5)
    assert mass.rounding < 1e-6
    nearly_singular = np.array([[1.0, 1.0 - 1e-9], [1.0 - 1e-9, 1.0]])
    assert as_mass(nearly_singular).rounding > 1e-4


def test_the_fast_logarithm_of_the_logistic_function():
    """To float32's precision wherever it is not zero, with the slope, and with what infinities and
    NaN should give.
    """
    z = np.concatenate([np.linspace(-90.0, 80.0, 20_001), np.linspace(-1.0, 1.0, 2_001)]).astype(
        np.float32
    )
    exact = -np.logaddexp(0.0, -z.astype(np.float64))
    np.testing.assert_allclose(jax.jit(log_sigmoid)(z), exact, rtol=4e-7)
    slopes = jax.jit(jax.vmap(jax.grad(log_sigmoid)))(z)
    np.testing.assert_allclose(slopes, 1.0 / (1.0 + np.exp(z.astype(np.float64))), rtol=2e-6)
    np.testing.assert_array_equal(
        log_sigmoid(jnp.array([np.inf, -np.inf, np.nan, 0.0])),
        np.array([0.0, -np.inf, np.nan, -np.log(2)], np.float32),
    )
    with jax.enable_x64(True):
        np.testing.assert_allclose(log_sigmoid(jnp.asarray(z, jnp.float64)), exact, rtol=1e-14)
