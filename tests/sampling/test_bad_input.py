"""Bad input gets a sentence that names the argument, the problem and the remedy; a NaN in mid-run
is a counted rejection.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from every_sampler import SAMPLERS, TARGETS

import amagold
from amagold import acceptance, gradients
from amagold.models import logistic


def log_likelihood(position, example):
    return -0.5 * (example - position) ** 2


def log_prior(position):
    return -0.5 * position**2


def posterior(data=None, **settings):
    return amagold.Posterior(
        log_likelihood, log_prior, np.arange(5.0) if data is None else data, **settings
    )


@pytest.mark.parametrize(
    ("data", "sentence"),
    [
        (
            np.array([1.0, np.nan, np.inf]),
            r"data must be finite, got 2 non-finite value\(s\); drop or impute",
        ),
        (
            {"x": np.ones((3, 2)), "y": np.ones(4)},
            r"data must have one common leading axis, got lengths data\['x'\]: 3, data\['y'\]: 4",
        ),
        ({}, "data must hold at least one array; for a target without data use amagold.Density"),
        (np.ones((0, 2)), "data must hold at least one example"),
        (3.0, "data must be an array with the examples along its first axis"),
    ],
)
def test_bad_data(data, sentence):
    with pytest.raises(ValueError, match=sentence):
        posterior(data)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize(
    ("start", "sentence"),
    [(np.nan, "position must be finite, got 1 non-finite"), (-1.0, "inside the target's domain")],
)
def test_bad_start(name, start, sentence):
    sampler = SAMPLERS[name](
        posterior(np.arange(12.0), domain=lambda position: position > 0.0), 0.1
    )
    with pytest.raises(ValueError, match=sentence):
        sampler.init(start)


def test_a_bad_start_of_one_chain_among_many():
    walled = amagold.hmc(posterior(domain=lambda position: position > 0.0), step_size=0.1)
    with pytest.raises(
        ValueError,
        match="positions must lie inside the target's domain, but the start of chain 2 fails "
        "that; start it inside",
    ):
        amagold.run_chains(walled, jax.random.key(0), np.array([1.0, 2.0, -1.0]), 5)
    half = amagold.hmc(
        amagold.Density(lambda position: jnp.where(position > 0, -position, -jnp.inf)),
        step_size=0.1,
    )
    with pytest.raises(
        ValueError,
        match="positions must have a finite log density, but the start of chain 1 fails that",
    ):
        amagold.run_chains(half, jax.random.key(0), np.array([1.0, -2.0]), 5)


def test_a_start_of_zero_density():
    target = amagold.Density(lambda position: jnp.where(position > 0, jnp.log(position), -jnp.inf))
    with pytest.raises(ValueError, match="position must have a finite log density"):
        amagold.hmc(target, step_size=0.1).init(-1.0)


@pytest.mark.parametrize(
    ("broken", "sentence"),
    [
        (
            {"log_likelihood": lambda position, example: jnp.ones(3) * position},
            r"log_likelihood must return one number, got shape \(3,\); .*one row",
        ),
        (
            {"log_likelihood": lambda position, example: jnp.int32(position)},
            "log_likelihood must return a floating-point number",
        ),
        (
            {"log_prior": lambda position: jnp.ones(2) * position},
            r"log_prior must return one number, got shape \(2,\); sum over",
        ),
        ({"domain": lambda position: jnp.array([True, True])}, "domain must return one boolean"),
        ({"log_likelihood": None}, "log_likelihood must be a function"),
    ],
)
def test_functions_of_the_wrong_shape(broken, sentence):
    parts = {
        "log_likelihood": log_likelihood,
        "log_prior": log_prior,
        "data": np.arange(5.0),
        **broken,
    }
    with pytest.raises(ValueError, match=sentence):
        amagold.hmc(amagold.Posterior(**parts), step_size=0.1).init(0.5)


def test_a_density_of_the_wrong_shape():
    with pytest.raises(ValueError, match=r"log_density must return one number, got shape \(2,\)"):
        amagold.hmc(amagold.Density(lambda position: position), step_size=0.1).init(np.zeros(2))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"batch_size": 6}, "batch_size must be between 1 and the 5 examples, got 6; lower it"),
        ({"batch_size": 0}, "batch_size must be a whole number of at least 1, got 0"),
        ({"batch_size": 2.5}, "batch_size must be a whole number"),
        ({"step_size": 0.0}, "step_size must be a finite number above 0, got 0; give a positive"),
        ({"step_size": -0.1}, "step_size must be a finite number above 0, got -0.1"),
        ({"step_size": np.nan}, "step_size must be a finite number above 0, got nan"),
        ({"step_size": "big"}, "step_size must be one number, got 'big'"),
        ({"friction": -1.0}, "friction must be a finite number at least 0, got -1"),
        (
            {"friction": 0.0, "resample_momentum": False},
            "friction must be positive with resample_momentum=False",
        ),
        ({"mass": 0.0}, "mass must be a finite number above 0, got 0"),
        ({"mass": np.array([1.0, -1.0])}, "mass must be positive everywhere"),
        ({"mass": np.array([[1.0, 2.0], [2.0, 1.0]])}, "mass must be positive definite"),
        ({"mass": np.array([[1.0, 2.0], [0.0, 1.0]])}, "mass must be a symmetric matrix"),
        ({"num_steps": 0}, "num_steps must be a whole number of at least 1, got 0"),
        (
            {"batch_size": 2, "gradient": gradients.full()},
            "batch_size and gradient must not both be given",
        ),
    ],
)
def test_bad_settings(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        amagold.amagold(posterior(), **{"step_size": 0.1, **settings})


def test_other_bad_settings():
    with pytest.raises(ValueError, match="scale must be a finite number at least 0"):
        gradients.noisy(-1.0)
    with pytest.raises(ValueError, match="noise_estimate must be at most the friction"):
        amagold.sghmc(posterior(), step_size=0.1, friction=0.1, noise_estimate=0.2)
    with pytest.raises(ValueError, match="keep must be 'auto'"):
        acceptance.full("some")
    with pytest.raises(ValueError, match="learning_rate must be a finite number above 0"):
        amagold.from_sgd(learning_rate=0.0, momentum_decay=0.1)
    with pytest.raises(ValueError, match="needs a target with data"):
        amagold.amagold(amagold.Density(log_prior), step_size=0.1, batch_size=3)
    with pytest.raises(ValueError, match="lacks log_density"):
        amagold.amortized(posterior(), type("Half", (), {"draw": None, "propose": None})())
    with pytest.raises(
        ValueError, match="positions must be finite, but the start of chain 1 fails that"
    ):
        amagold.run_chains(
            amagold.hmc(posterior(), step_size=0.1), jax.random.key(0), np.array([0.0, np.nan]), 5
        )
    with pytest.raises(ValueError, match="num_samples must be a whole number of at least 1"):
        amagold.run_chains(
            amagold.hmc(posterior(), step_size=0.1), jax.random.key(0), np.zeros(2), 0
        )


@pytest.mark.parametrize(
    ("mass", "sentence"),
    [
        (np.ones(4), "mass must be like the position or a vector of its 3 parameters"),
        (np.eye(2), "mass must be a 3 x 3 matrix"),
    ],
)
def test_a_mass_that_does_not_fit(mass, sentence):
    target, position = TARGETS["vector"]
    with pytest.raises(ValueError, match=sentence):
        amagold.amagold(target, step_size=0.1, mass=mass).init(position)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((np.ones(3), np.ones(3)), "X must have a row per example"),
        ((np.ones((3, 2)), np.ones(4)), "y must have one outcome for each of the 3 rows"),
        ((np.ones((3, 2)), np.array([0, 1, 2])), "y must hold 0 and 1"),
        ((np.ones((3, 2)), np.ones(3), 0.0), "prior_scale must be a finite number above 0"),
    ],
)
def test_bad_tables(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        logistic(*arguments)


def test_nan_in_mid_run_is_a_counted_rejection():
    """A density that breaks beyond 1: the chain stays inside, and every broken proposal is
    reported.
    """
    target = amagold.Density(
        lambda position: jnp.where(position < 1.0, -0.5 * position**2, jnp.nan)
    )
    for resample in (True, False):
        sampler = amagold.l2mc(target, step_size=0.5, num_steps=3, resample_momentum=resample)
        draws = amagold.run_chains(sampler, jax.random.key(0), np.zeros(8), 200)
        assert np.isfinite(draws.position).all()
        assert draws.position.max() < 1.0
        broken = np.isnan(draws.info.log_ratio)
        assert broken.any()
        assert np.all(draws.info.is_divergent[broken])
        assert not draws.info.is_accepted[broken].any()
        assert np.all(draws.info.acceptance_rate[broken] == 0.0)


@pytest.mark.parametrize("value", [jnp.inf, -jnp.inf])
def test_an_infinite_ratio_is_a_counted_rejection(value):
    target = amagold.Density(lambda position: jnp.where(jnp.abs(position) < 0.5, 0.0, value))
    sampler = amagold.hmc(target, step_size=1.0, num_steps=1)
    draws = amagold.run_chains(sampler, jax.random.key(0), np.zeros(8), 50)
    assert np.abs(draws.position).max() < 0.5
    assert draws.info.is_divergent.any()
    assert not draws.info.is_accepted[draws.info.is_divergent].any()


def test_a_biased_sampler_that_blows_up_says_so():
    sampler = amagold.sghmc(amagold.Density(lambda position: -(position**4)), step_size=3.0)
    draws = amagold.run_chains(sampler, jax.random.key(0), np.ones(2), 50)
    assert draws.info.is_divergent.any()
