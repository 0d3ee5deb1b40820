"""Likelihoods of a user's own linear predictors: forms, sentences, and the test that they get."""

import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from false_alarms import threshold
from jax.scipy.special import betainc
from jax.scipy.stats import norm

import amagold
from amagold import acceptance

GENERATOR = np.random.default_rng(5)
X = GENERATOR.normal(size=(600, 2)).astype(np.float32)
TIMES = (1.0 + X @ [0.5, -0.3] + GENERATOR.normal(size=600)).astype(np.float32)
DATA = {
    "x": X,
    "age": X[:, 0],
    "y": np.minimum(TIMES, 2.0),
    "is_seen": (TIMES < 2.0).astype(np.float32),
}


def censored(z, row):
    residual = (row["y"] - z["mean"]) * jnp.exp(-z["log_sd"])
    return jnp.where(row["is_seen"] > 0, norm.logpdf(residual) - z["log_sd"], norm.logsf(residual))


def flat_prior(position):
    return -0.5 * sum(jnp.sum(leaf**2) for leaf in jax.tree.leaves(position))


def posterior(outcome, columns, **settings):
    return amagold.Posterior(
        amagold.LinearLikelihood(outcome, columns), flat_prior, DATA, **settings
    )


def test_positions_have_the_form_of_the_columns():
    target = posterior(censored, {"mean": (1, "x"), "log_sd": 1})
    assert {name: part.shape for name, part in target.init.items()} == {"mean": (3,), "log_sd": ()}
    position = {"mean": jnp.array([0.5, 1.0, -2.0]), "log_sd": jnp.float32(0.3)}
    rows = target.examples.rows(np.arange(4))
    wanted = jax.vmap(
        lambda row: censored({"mean": 0.5 + row["x"] @ jnp.array([1.0, -2.0]), "log_sd": 0.3}, row)
    )(rows)
    np.testing.assert_allclose(target.log_likelihoods(position, rows), wanted, rtol=1e-5)
    one = posterior(lambda z, row: -jnp.exp(z) + z, (1, "age", "x"))
    assert one.init.shape == (4,)


def test_equal_functions_make_equal_bounds():
    one, other = (posterior(censored, {"mean": "x", "log_sd": 1}) for _ in range(2))
    assert one.bounds == other.bounds
    assert hash(one.bounds) == hash(other.bounds)


@pytest.mark.slow
def test_a_plan_takes_the_exact_test_and_the_draws_are_those_of_all_data():
    """The same posterior with a test of all data; both means are those of a few thousand draws."""
    target = posterior(censored, {"mean": (1, "x"), "log_sd": 1})
    plain = amagold.Posterior(
        lambda at, row: target.log_likelihood(at, row), flat_prior, DATA, init=target.init
    )
    few, all_rows = (
        amagold.sample(each, 1000, 300, progress=False, seed=3) for each in (target, plain)
    )
    assert few.plan.test == "tuna"
    assert all_rows.plan.test == "full"
    assert float(few.sample_stats["num_energy_examples"].mean()) < 300
    means, errors = [], []
    for run in (few, all_rows):
        draws = np.concatenate(
            [run.posterior["mean"].values, run.posterior["log_sd"].values[..., None]], axis=-1
        )
        means.append(draws.mean(axis=(0, 1)))
        errors.append(draws.std(axis=(0, 1)) / np.sqrt(run.summary()["ess_bulk"].min()))
    apart = np.abs(means[0] - means[1]) / np.hypot(*errors)
    assert apart.shape == (4,)
    assert apart.max() < threshold(4)


def test_what_is_not_covered_is_said():
    target = posterior(lambda z, row: jnp.log(betainc(2.0, 3.0, jax.nn.sigmoid(z))), "x")
    assert target.bounds is None
    assert any("uses `" in note and "not covered" in note for note in target.notes)
    with pytest.raises(ValueError, match=r"bounds must be known.*not covered"):
        acceptance.tuna().bind(target)


@pytest.mark.slow
def test_an_example_without_a_bound_is_named_and_the_plan_does_without():
    target = posterior(lambda z, row: -jnp.abs(z - row["y"]) - 0.5 * z**2, "x")
    with pytest.raises(ValueError, match=r"none was found for example \d+ within 7.41"):
        acceptance.tuna().bind(target)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        run = amagold.sample(target, 20, 20, progress=False)
    assert run.plan.test == "full"
    assert any("none was found for example" in str(each.message) for each in seen)


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({}, "one to 3 predictors, got 0"),
        ({"a": "x", "b": "x", "c": "x", "d": "x"}, "one to 3 predictors, got 4"),
        ((), "got none"),
        (None, "got None"),
        ("height", "'height' is none: they are 'age', 'is_seen', 'x', 'y'"),
    ],
)
def test_wrong_columns_are_refused(columns, words):
    with pytest.raises(ValueError, match=words):
        posterior(lambda z, row: -jnp.exp(z), columns)


def test_wrong_positions_are_refused():
    target = posterior(lambda z, row: -jnp.exp(z), "x", init=np.zeros(3))
    with pytest.raises(ValueError, match=r"must have 2 coefficient\(s\)"):
        target.check(target.init)
    named = posterior(censored, {"mean": "x", "log_sd": 1}, init={"mean": np.zeros(2)})
    with pytest.raises(ValueError, match="must be a dict with 'log_sd'"):
        named.check(named.init)
    with pytest.raises(ValueError, match="outcome must be a function"):
        amagold.LinearLikelihood("x", censored)


def test_firefly_asks_for_more():
    target = posterior(censored, {"mean": "x", "log_sd": 1})
    with pytest.raises(ValueError, match="hold within a ball alone"):
        acceptance.firefly().bind(target)
