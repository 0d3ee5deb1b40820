"""2 Phi(-s / 2) against what chains in equilibrium measure, for every batch plan."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from doubles import some_of
from scipy.optimize import minimize
from scipy.stats import norm

import amagold
from amagold import gradients
from amagold.models import logistic

NUM_EXAMPLES, DIMENSION, NUM_CHAINS = 2000, 20, 256


@pytest.fixture(scope="module")
def problem():
    """Logistic regression, its posterior covariance at the mode, and positions in equilibrium from
    a long exact run.
    """
    generator = np.random.default_rng(3)
    X = generator.normal(size=(NUM_EXAMPLES, DIMENSION)).astype(np.float32)
    y = generator.uniform(size=NUM_EXAMPLES) < 1 / (
        1 + np.exp(-X @ generator.normal(size=DIMENSION) * 0.3)
    )
    target = logistic(X, y, prior_scale=1.0, intercept=False)
    X64, sign = X.astype(np.float64), np.where(y, 1.0, -1.0)
    energy = lambda at: 0.5 * at @ at + np.sum(np.log1p(np.exp(-sign * (X64 @ at))))  # noqa: E731
    mode = minimize(energy, np.zeros(DIMENSION)).x
    weight = 1 / (1 + np.exp(-X64 @ mode))
    hessian = np.eye(DIMENSION) + (X64 * (weight * (1 - weight))[:, None]).T @ X64
    starts = generator.multivariate_normal(mode, np.linalg.inv(hessian), size=NUM_CHAINS).astype(
        np.float32
    )
    warm = amagold.run_chains(
        amagold.hmc(target, step_size=0.4, num_steps=4, mass=hessian),
        jax.random.key(0),
        starts,
        1,
        thin=20,
    )
    return target, hessian, warm.position[:, -1], mode.astype(np.float32)


def measured(target, positions, num_transitions=12, **settings):
    sampler = amagold.amagold(target, **settings)
    return amagold.run_chains(
        sampler, jax.random.key(1), positions, num_transitions
    ).info.acceptance_rate.mean()


# (plan, batch size, T, step size): tau = T * step_size, in units of a posterior standard deviation
SETTINGS = [
    ("iid", 100, 5, 0.03),
    ("iid", 100, 10, 0.03),
    ("iid", 100, 20, 0.025),
    ("epoch", 100, 10, 0.03),
    ("epoch", 100, 15, 0.03),
    ("epoch", 100, 20, 0.025),
    ("palindrome", 100, 10, 0.03),
    ("palindrome", 100, 20, 0.025),
    ("palindrome", 100, 40, 0.0125),
]


@pytest.mark.parametrize(
    ("plan", "batch_size", "num_steps", "step_size"), some_of(SETTINGS, SETTINGS[2])
)
def test_prediction(problem, plan, batch_size, num_steps, step_size):
    target, hessian, positions, mode = problem
    gradient = gradients.minibatch(batch_size, plan=plan)
    variance = float(
        amagold.gradient_variance(
            target, gradients.minibatch(batch_size), mode, jax.random.key(2), hessian, 2000
        )
    )
    dynamics = dict(step_size=step_size, num_steps=num_steps, friction=0.25)
    full_batch = measured(target, positions, mass=hessian, gradient=gradients.full(), **dynamics)
    discretisation = (-2 * norm.ppf(full_batch / 2)) ** 2
    predicted = amagold.predicted_acceptance(
        variance,
        plan=plan,
        batches_per_epoch=NUM_EXAMPLES // batch_size,
        curvature=1.0,
        discretisation_variance=discretisation,
        **dynamics,
    )
    found = measured(target, positions, mass=hessian, gradient=gradient, **dynamics)
    assert abs(found - predicted) < (0.03 if predicted > 0.4 else 0.045), (
        found,
        predicted,
        variance,
        full_batch,
    )


@pytest.mark.slow
def test_one_pass_over_the_data(problem):
    """tau = 0.5 in one pass: independent batches are mostly rejected, a shuffled epoch nearly
    behaves like the full batch.
    """
    target, hessian, positions, _ = problem
    dynamics = dict(step_size=0.025, num_steps=20, friction=0.02, mass=hessian)
    rates = {
        plan: measured(target, positions, gradient=gradients.minibatch(100, plan=plan), **dynamics)
        for plan in ("iid", "epoch")
    }
    assert abs(rates["iid"] - 0.28) < 0.05, rates
    assert rates["epoch"] > 0.8, rates


def test_the_formula_without_turning():
    """s^2 = eps^2 T V^2 / (1 + b), times 1 - (T - 1) / (E - 1) for an epoch without friction."""
    s = np.sqrt(0.1**2 * 10 * 3.0 / (1 + 0.1 * 0.5))
    assert amagold.predicted_acceptance(
        3.0, step_size=0.1, num_steps=10, friction=0.5
    ) == pytest.approx(2 * norm.cdf(-s / 2))
    s = np.sqrt(0.1**2 * 10 * 3.0 * (1 - 9 / 19))
    found = amagold.predicted_acceptance(
        3.0, step_size=0.1, num_steps=10, friction=0.0, plan="epoch", batches_per_epoch=20
    )
    assert found == pytest.approx(2 * norm.cdf(-s / 2))
    whole = amagold.predicted_acceptance(
        3.0, step_size=0.1, num_steps=20, friction=0.0, plan="epoch", batches_per_epoch=20
    )
    assert whole == pytest.approx(1.0)


def test_bad_settings():
    with pytest.raises(ValueError, match="gradient_variance must be a finite number at least 0"):
        amagold.predicted_acceptance(-1.0, step_size=0.1)
    with pytest.raises(ValueError, match="plan must be 'iid', 'epoch' or 'palindrome'"):
        amagold.predicted_acceptance(1.0, step_size=0.1, plan="fixed")
    with pytest.raises(ValueError, match="batches_per_epoch must be a whole number"):
        amagold.predicted_acceptance(1.0, step_size=0.1, plan="epoch")
    with pytest.raises(ValueError, match="num_steps must fit the 4 batches"):
        amagold.predicted_acceptance(
            1.0, step_size=0.1, num_steps=6, plan="epoch", batches_per_epoch=4
        )


def test_gradient_variance_of_known_noise():
    target = amagold.Density(lambda position: -0.5 * jnp.sum(position**2))
    found = amagold.gradient_variance(
        target,
        gradients.noisy(2.0),
        np.ones(3),
        jax.random.key(0),
        mass=np.array([1.0, 4.0, 4.0]),
        num_draws=20_000,
    )
    np.testing.assert_allclose(found, 4.0 * (1 + 0.25 + 0.25), rtol=0.05)
