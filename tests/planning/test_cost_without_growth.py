"""Runs whose cost does not grow with the data: the plan chooses them where they pay, says so, and
they can be interrupted.
"""

import itertools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import amagold
from amagold.mode._curvature import curvature_at
from amagold.mode._mode_search import find_mode
from amagold.planning._at_mode import build_at_mode
from amagold.planning._plan import make_plan
from amagold.sampling import _engine as engine
from amagold.sampling._interruption import Stopper


def table(num_examples, num_predictors=3, seed=0):
    generator = np.random.default_rng(seed)
    X = generator.normal(size=(num_examples, num_predictors)).astype(np.float32)
    coefficients = generator.normal(size=num_predictors)
    return X, generator.random(num_examples) < 1.0 / (1.0 + np.exp(-X @ coefficients))


def without_bounds(num_examples):
    """The same regression as a user would write it."""
    X, y = table(num_examples)
    log_likelihood = lambda at, row: jax.nn.log_sigmoid(row[1] * jnp.dot(row[0], at))  # noqa: E731
    return amagold.Posterior(
        log_likelihood,
        lambda at: -0.5 * jnp.sum(at**2),
        (X, np.where(y, 1.0, -1.0).astype(np.float32)),
        init=np.zeros(3, np.float32),
    )


def planned(target, num_chains=4):
    mode = find_mode(target, target.init)
    curvature = curvature_at(target, mode.position)
    at_mode = build_at_mode(target, mode, curvature)
    return make_plan(
        target, mode, curvature, jax.random.key(0), num_chains=num_chains, at_mode=at_mode
    )


def test_with_bounds_a_few_examples_decide():
    plan = planned(amagold.models.logistic(*table(100_000), prior_scale=1.0))
    assert (plan.gradient, plan.batch_size, plan.test, plan.mass) == (
        "expansion",
        None,
        "tuna",
        "dense",
    )
    assert "gradients read nothing" in str(plan)
    assert plan.test_examples < 10
    assert plan.slow_down < 0.1
    assert "however many there are in all" in str(plan)
    assert "the mass is the curvature at the mode" in str(plan)


def test_without_bounds_all_data_decide():
    plan = planned(without_bounds(100_000))
    assert (plan.gradient, plan.order, plan.test) == ("control variate", 2, "full")
    assert "differences to their second-order expansions about the mode" in str(plan)
    assert "over all data" in str(plan)


def test_few_data_are_taken_whole():
    plan = planned(amagold.models.logistic(*table(200), prior_scale=1.0))
    assert (plan.gradient, plan.test, plan.order) == ("full", "full", None)


@pytest.mark.slow
def test_where_many_examples_would_be_drawn_all_data_decide():
    plan = planned(amagold.models.logistic(*table(2_000, 20), prior_scale=1.0))
    assert plan.test == "full"
    assert {kind["test"] for kind in plan.kinds} == {"full", "tuna"}, "the other was weighed"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_an_interrupted_run_goes_on_to_the_bit(tmp_path, monkeypatch):
    monkeypatch.setattr(engine, "DRAWS_BYTES", 4_000)
    target = amagold.models.logistic(*table(20_000), prior_scale=1.0)
    settings = dict(num_samples=240, num_warmup=100, num_chains=2, progress=False)
    whole = amagold.sample(target, **settings)
    assert whole.plan.test == "tuna"
    assert whole.plan.integrator == "rotation"
    assert (
        float(whole.sample_stats["acceptance_rate"].mean()) > whole.plan.predicted_acceptance - 0.05
    )
    asked = itertools.count()
    with monkeypatch.context() as patch:
        patch.setattr(
            Stopper, "reason", property(lambda stopper: "interrupted" if next(asked) > 8 else None)
        )
        part = amagold.sample(target, **settings, store=tmp_path / "run.zarr")
    assert part.is_partial
    assert 0 < part.posterior.sizes["draw"] < 240
    resumed = amagold.resume(tmp_path / "run.zarr", target, progress=False)
    for name in ("acceptance_rate", "num_energy_examples"):
        np.testing.assert_array_equal(resumed.sample_stats[name], whole.sample_stats[name])
    for name, draws in whole.posterior.data_vars.items():
        np.testing.assert_array_equal(resumed.posterior[name], draws)
