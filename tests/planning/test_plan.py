"""The plan predicts what chains then measure, chooses what a problem needs, and can be stored."""

import dataclasses
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from doubles import some_of
from false_alarms import worst
from scipy.stats import norm

import amagold
from amagold import gradients
from amagold.mode import _curvature as curvature_file
from amagold.mode._curvature import curvature_at
from amagold.mode._mode_search import find_mode
from amagold.mode._spectrum import Spectrum, grouped
from amagold.models import double_well, logistic
from amagold.planning._best_acceptance import best_acceptance
from amagold.planning._candidate_search import best_of, every_candidate
from amagold.planning._costs import TransitionCosts, costs_of
from amagold.planning._discretisation import acceptance_from, discretisation_variance
from amagold.planning._gradient_noise import measure_noise, noise_variance
from amagold.planning._leapfrog_option import FRICTION_SHARE, proposal_correlation
from amagold.planning._plan import Plan, make_plan
from amagold.planning._plan_inputs import PlanInputs
from amagold.planning._starts import disperse


def synthetic():
    generator = np.random.default_rng(3)
    X = generator.normal(size=(2000, 20)).astype(np.float32)
    y = generator.uniform(size=2000) < 1 / (1 + np.exp(-X @ generator.normal(size=20) * 0.3))
    return logistic(X, y, prior_scale=1.0, intercept=False)


def heart():
    table = amagold.datasets.heart()
    return logistic(table.X, table.y, prior_scale=1.0)


def overstated_noise():
    """A regression whose likelihood allows for twenty times the residuals it has: gradients from
    few examples nearly agree.
    """
    generator = np.random.default_rng(0)
    X = generator.normal(size=(4_000, 3)).astype(np.float32)
    y = (X @ generator.normal(size=3) + 0.1 * generator.normal(size=4_000)).astype(np.float32)
    log_likelihood = lambda at, row: -0.5 * ((row[1] - row[0] @ at) / 2.0) ** 2  # noqa: E731
    return amagold.Posterior(
        log_likelihood, lambda at: -0.005 * jnp.sum(at**2), (X, y), init=np.zeros(3)
    )


def planned(target, start=None, **options):
    mode = find_mode(target, target.init if start is None else start)
    curvature = curvature_at(target, mode.position)
    return (
        mode,
        curvature,
        make_plan(target, mode, curvature, jax.random.key(0), num_chains=4, **options),
    )


def measured(target, mode, curvature, plan, num_chains=32):
    starts = disperse(target, mode, curvature, num_chains, jax.random.key(1), scale=1.0)
    sampler = plan.build(target, plan.initial_mass(curvature))
    return amagold.run_chains(
        sampler, jax.random.key(2), starts, 20, num_burn_in=5
    ).info.acceptance_rate.mean()


def kinds_of(plan):
    """The plan with the choices of each kind it weighed."""
    names = ("gradient", "batch_plan", "batch_size", "mass", "num_steps", "step_size", "integrator")
    for kind in plan.kinds:
        friction = FRICTION_SHARE / (kind["num_steps"] * kind["step_size"])
        yield (
            kind,
            dataclasses.replace(plan, friction=friction, **{name: kind[name] for name in names}),
        )


def test_best_acceptance():
    table = {0.05: 0.91, 0.085: 0.85, 0.1: 0.83, 0.25: 0.65, 0.5: 0.45, 1.0: 0.234}
    for share, acceptance in table.items():
        assert abs(best_acceptance(share) - acceptance) < 0.005
    s = -2 * norm.ppf(best_acceptance(0.3) / 2)
    assert s * norm.pdf(s / 2) / (4 * norm.cdf(-s / 2)) == pytest.approx(0.3)
    with pytest.raises(ValueError, match="gradient_share must be at most 1"):
        best_acceptance(1.5)


@pytest.mark.parametrize(
    ("step_size", "num_steps"), some_of([(0.3, 1), (0.35, 4), (0.5, 3)], (0.35, 4))
)
def test_discretisation_variance(step_size, num_steps):
    """The closed form against HMC from exact draws of a Gaussian."""
    eigenvalues = np.array([0.5, 1.0, 1.0, 4.0, 9.0])
    target = amagold.Density(
        lambda at: -0.5 * jnp.sum(jnp.asarray(eigenvalues, jnp.float32) * at**2)
    )
    starts = np.random.default_rng(0).normal(size=(8000, 5)) / np.sqrt(eigenvalues)
    sampler = amagold.hmc(target, step_size=step_size, num_steps=num_steps)
    info = amagold.run_chains(sampler, jax.random.key(0), starts.astype(np.float32), 1).info
    variance = discretisation_variance(
        Spectrum(eigenvalues, np.ones(5)), np.array([step_size]), num_steps
    )[0]
    # a normal log a whose exponential has mean one has mean -s^2 / 2
    assert worst(np.asarray(info.log_ratio[:, 0], np.float64), -variance / 2.0) <= 1.0
    # one direction next to its limit of stability makes log a far from normal
    assert abs(info.acceptance_rate.mean() - acceptance_from(variance)) < (
        0.03 if step_size < 0.4 else 0.07
    )


def test_discretisation_at_the_limit_of_stability():
    spectrum = Spectrum(np.array([1.0, 4.0]), np.ones(2))
    assert np.all(np.isinf(discretisation_variance(spectrum, np.array([1.0, 1.5]), 3)))
    assert np.isfinite(discretisation_variance(spectrum, np.array([0.99]), 3)[0])
    # 2 Phi(-sqrt(0.7) / 2)
    assert acceptance_from(0.7) == pytest.approx(2.0 * norm.cdf(-np.sqrt(0.7) / 2.0))


@pytest.mark.parametrize(("plan", "num_steps"), [("iid", 12), ("epoch", 20), ("palindrome", 40)])
def test_noise_variance_is_the_sum_over_all_pairs_of_steps(plan, num_steps):
    friction, step_size = 0.1 / (num_steps * 0.03), 0.03
    spectrum = Spectrum(np.array([1.0]), np.array([1.0]))
    found = noise_variance(
        np.array([300.0]), spectrum, np.array([step_size]), num_steps, 0.1, plan, 100, 2000
    )[0]
    variance = 3.0 if plan == "iid" else 3.0 * 1900 / 1999
    settings = dict(
        step_size=step_size,
        num_steps=num_steps,
        friction=friction,
        plan=plan,
        batches_per_epoch=20,
        curvature=1.0,
    )
    assert acceptance_from(found) == pytest.approx(
        amagold.predicted_acceptance(variance, **settings), abs=1e-4
    )


def test_measured_noise_is_the_gradient_variance():
    target = heart()
    positions = jnp.stack([jnp.zeros(14), jnp.full(14, 0.2)])
    noise = measure_noise(target, positions, jax.random.key(0))[None]
    mass = np.linspace(1.0, 2.0, 14)
    expected = [
        amagold.gradient_variance(
            target, gradients.minibatch(16), position, jax.random.key(1), mass, 2000
        )
        for position in positions
    ]
    assert np.trace(noise.covariance / mass) / 16 == pytest.approx(
        float(np.mean(expected)), rel=0.1
    )


def test_proposal_correlation_with_friction():
    """The closed form is the power of one step's matrix."""
    step_size, eigenvalue, num_steps = 0.3, 2.0, 9
    b = FRICTION_SHARE / num_steps
    drift = np.array([[1.0, step_size / 2], [0.0, 1.0]])
    kick = np.array([[1.0, 0.0], [-step_size * eigenvalue / (1 + b), (1 - b) / (1 + b)]])
    expected = np.linalg.matrix_power(drift @ kick @ drift, num_steps)[0, 0]
    found = proposal_correlation(
        Spectrum(np.array([eigenvalue]), np.ones(1)), np.array([step_size]), num_steps
    )
    assert found[0, 0] == pytest.approx(expected)


def test_groups_keep_the_ends_and_the_sums():
    eigenvalues = np.geomspace(0.01, 50.0, 200)
    spectrum, weights = grouped(Spectrum(eigenvalues, np.ones(200)), eigenvalues)
    assert len(spectrum.eigenvalues) <= 32
    assert spectrum.eigenvalues.min() == pytest.approx(0.01)
    assert spectrum.eigenvalues.max() == pytest.approx(50.0)
    assert spectrum.counts.sum() == pytest.approx(200)
    assert weights is not None
    assert weights.sum() == pytest.approx(eigenvalues.sum())


@pytest.mark.slow
def test_the_full_batch_is_best_for_a_regression_that_whitens_well():
    target = heart()
    mode, curvature, plan = planned(target)
    assert (plan.gradient, plan.mass, plan.slow_down) == ("full", "dense", 1.0)
    assert abs(measured(target, mode, curvature, plan) - plan.predicted_acceptance) < 0.06
    assert "Minibatches would not help" in str(plan)


@pytest.mark.slow
def test_batches_without_repetition_are_predicted():
    target = synthetic()
    mode, curvature, plan = planned(target)
    assert plan.gradient == "full"
    weighed = {
        kind["batch_plan"]: (kind["acceptance"], variant) for kind, variant in kinds_of(plan)
    }
    assert set(weighed) == {None, "iid", "epoch", "palindrome"}
    for kind in ("epoch", "palindrome"):
        expected, variant = weighed[kind]
        assert abs(measured(target, mode, curvature, variant) - expected) < 0.06, kind


@pytest.mark.slow
def test_minibatches_are_best_where_their_noise_is_small():
    target = overstated_noise()
    # a Gaussian, which one full gradient turns by a quarter, and nothing is cheaper than that
    assert planned(target)[2].num_steps == 1
    mode, curvature, plan = planned(target, allow_turns=False)
    assert plan.gradient == "minibatch"
    assert plan.batch_plan == "iid"
    assert plan.slow_down < 1.0
    assert plan.gradient_variance > 0
    assert (
        abs(measured(target, mode, curvature, plan, num_chains=16) - plan.predicted_acceptance)
        < 0.06
    )
    assert "independently" in str(plan)


def choose(eigenvalues, noise_share, operations, num_examples=10_000):
    """What is chosen for a spectrum, with gradients as noisy as a share of a model that fits, and
    an example's operations.
    """
    spectrum = Spectrum(np.asarray(eigenvalues, float), np.ones(len(eigenvalues)))
    costs = TransitionCosts(operations, num_examples, len(eigenvalues), row_values=10)
    # in a model that fits, one example's gradient has N times the curvature as its variance
    inputs = PlanInputs(
        "diagonal", spectrum, noise_share * num_examples * spectrum.eigenvalues, costs
    )
    return best_of(list(every_candidate(inputs)))


def test_each_kind_has_its_problem():
    stretched, costly, cheap = np.geomspace(1.0, 100.0, 10), 1e6, 50.0
    # gradients as noisy as those of a model that fits: more noise than any saving is worth
    assert choose(np.ones(50), 1.0, costly).gradient == "full"
    assert choose(stretched, 1.0, costly).gradient == "full"
    # less noise: an epoch, whose errors cancel, and then independent batches that need not see all
    # data
    assert choose(np.ones(50), 0.1, costly).batch_plan == "palindrome"
    assert choose(np.ones(5), 0.1, costly).batch_plan == "epoch"
    assert choose(stretched, 1e-3, costly).batch_plan == "iid"
    # a model so cheap that shuffling costs more than the gradients
    assert choose(np.ones(50), 0.1, cheap).gradient == "full"


def test_a_stretched_posterior_takes_more_steps():
    assert (
        choose(np.geomspace(1.0, 400.0, 20), 1.0, 1e4).num_steps
        > 4 * choose(np.ones(20), 1.0, 1e4).num_steps
    )


def test_targets_without_data():
    _, _, plan = planned(double_well())
    assert plan.gradient == "full"
    assert plan.num_examples == 0
    assert plan.mass == "diagonal"
    assert "no data" in str(plan)
    target = amagold.Density(lambda at: jnp.sum(at))
    _, curvature, rough = planned(target, np.zeros(2))
    assert not rough.is_mode_found
    assert "no mode was found" in str(rough)
    assert np.all(np.isfinite(rough.initial_mass(curvature)))


@pytest.mark.slow
def test_many_parameters_take_a_diagonal_mass(monkeypatch):
    monkeypatch.setattr(curvature_file, "MOST_DENSE", 256)
    target = amagold.Density(lambda at: -0.5 * jnp.sum(jnp.linspace(1.0, 100.0, 300) * at**2))
    mode, curvature, plan = planned(target, np.full(300, 0.1))
    assert plan.mass == "diagonal"
    assert (
        abs(measured(target, mode, curvature, plan, num_chains=8) - plan.predicted_acceptance)
        < 0.06
    )


def test_the_same_again_and_through_json():
    target = heart()
    mode, curvature, plan = planned(target)
    assert make_plan(target, mode, curvature, jax.random.key(0), num_chains=4) == plan
    stored = json.loads(json.dumps(plan.to_json()))
    assert Plan.from_json(stored) == plan
    del stored["num_steps"]
    with pytest.raises(
        ValueError, match="stored must be a plan from to_json, got one without num_steps"
    ):
        Plan.from_json(stored)


def test_operations_are_counted():
    costs = costs_of(heart(), np.zeros(14))
    assert costs.row_values == 15
    assert 2 * 14 <= costs.operations <= 150
    looped = amagold.Density(lambda at: jax.lax.fori_loop(0, 10, lambda i, x: jnp.sin(x), at).sum())
    assert costs_of(looped, jnp.zeros(5)).operations > 300
