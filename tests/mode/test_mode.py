"""The mode, the curvature there, and starts dispersed around it."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from false_alarms import worst
from scipy.optimize import minimize

import amagold
from amagold.core import trees
from amagold.energy import _chunks as chunks
from amagold.mode import _curvature as curvature_file, _mode_search as mode_file
from amagold.mode._curvature import curvature_at
from amagold.mode._mode_search import Mode, find_mode
from amagold.models import double_well, logistic
from amagold.planning._starts import disperse


def heart():
    table = amagold.datasets.heart()
    return logistic(table.X, table.y, prior_scale=1.0)


def in_other_units():
    """Predictors whose sizes span six orders of magnitude, as in a table that nobody
    standardised.
    """
    generator = np.random.default_rng(1)
    size = 10.0 ** np.linspace(-2, 4, 8)
    X = generator.normal(size=(1000, 8)) * size + size
    return logistic(X, generator.uniform(size=1000) < 0.4, prior_scale=10.0, standardize=False)


def distance_to_mode(target, position):
    """How far a position is from the mode found in float64, in posterior standard deviations."""
    X, sign = (np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(target.data))
    precision = 1.0 / target.log_prior.scale**2
    scales = 1.0 / np.sqrt(0.25 * np.sum(X**2, axis=0) + precision)
    energy = lambda at: 0.5 * precision * at @ at + np.sum(np.logaddexp(0.0, -sign * (X @ at)))  # noqa: E731
    weight = lambda at: 1.0 / (1.0 + np.exp(sign * (X @ at)))  # noqa: E731
    slope = lambda at: precision * at - X.T @ (sign * weight(at))  # noqa: E731
    best = (
        minimize(
            lambda z: energy(scales * z),
            position / scales,
            jac=lambda z: scales * slope(scales * z),
            tol=1e-10,
        ).x
        * scales
    )
    hessian = (
        precision * np.eye(len(best)) + (X * (weight(best) * (1 - weight(best)))[:, None]).T @ X
    )
    apart = np.asarray(position, np.float64) - best
    return np.sqrt(apart @ hessian @ apart)


@pytest.mark.parametrize(
    ("target", "start"), [(heart(), 0.0), (heart(), 30.0), (in_other_units(), 0.0)]
)
def test_a_regression(target, start):
    found = find_mode(target, np.full(target.data.predictors.shape[1], start, np.float32))
    assert found.is_converged
    assert distance_to_mode(target, np.asarray(found.position)) < 0.2, found
    again = find_mode(target, found.position)
    assert again.is_converged
    assert again.num_iterations <= 6


def test_data_in_chunks_and_no_second_compilation(monkeypatch):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(501, 3)).astype(np.float32)
    targets = [
        logistic(X, generator.uniform(size=501) < 0.3, prior_scale=1.0, intercept=False)
        for _ in range(2)
    ]
    whole = find_mode(targets[0], np.zeros(3)).position
    compiled = mode_file._search()._cache_size()
    find_mode(targets[1], np.ones(3), max_iterations=100)
    assert mode_file._search()._cache_size() == compiled
    mode_file._search.cache_clear()
    monkeypatch.setattr(chunks, "TEMPORARY_BYTES", 2000)
    np.testing.assert_allclose(find_mode(targets[0], np.zeros(3)).position, whole, atol=2e-3)
    mode_file._search.cache_clear()


def test_a_pytree_and_a_double_well():
    target = amagold.Density(
        lambda at: -0.5 * jnp.sum((at["a"] - 3.0) ** 2) - 2.0 * jnp.sum((at["b"] + 1.0) ** 2)
    )
    found = find_mode(target, {"a": np.zeros((2, 2)), "b": 5.0})
    assert found.is_converged
    np.testing.assert_allclose(found.position["a"], 3.0, atol=0.02)
    np.testing.assert_allclose(found.position["b"], -1.0, atol=0.02)
    well = find_mode(double_well(), 0.0)
    assert well.is_converged
    assert abs(float(well.position) - 2.22) < 0.02


def test_trial_points_outside_the_domain():
    """log is NaN below zero, where the first long steps lead."""
    target = amagold.Density(
        lambda at: jnp.sum(3.0 * jnp.log(at) - at), domain=lambda at: jnp.all(at > 0)
    )
    found = find_mode(target, np.full(2, 50.0))
    assert found.is_converged
    np.testing.assert_allclose(found.position, 3.0, atol=0.05)


@pytest.mark.parametrize(
    "log_density",
    [
        lambda at: 0.0 * jnp.sum(at),  # flat
        lambda at: jnp.sum(at),  # falls off forever
        lambda at: jnp.sum(at**2),  # and overflows
        lambda at: jnp.sum(-0.5 * at[1:] ** 2) * jnp.exp(-at[0]) - 2.0 * at[0],  # a spike
        lambda at: (
            -jnp.sum(jnp.exp(0.5 * (at + 11.0) ** 2))
        ),  # gradients whose squares overflow at the start
    ],
)
def test_without_a_mode_in_reach(log_density):
    found = find_mode(amagold.Density(log_density), np.ones(3))
    assert not found.is_converged
    assert np.all(np.isfinite(found.position))


def test_a_mode_on_the_edge_of_the_domain():
    target = amagold.Density(
        lambda at: -jnp.sum((at + 1.0) ** 2), domain=lambda at: jnp.all(at > 0)
    )
    found = find_mode(target, np.full(2, 5.0))
    assert not found.is_converged
    assert np.all(np.asarray(found.position) > 0)


def test_bad_settings():
    with pytest.raises(ValueError, match="max_iterations must be a whole number of at least 1"):
        find_mode(heart(), np.zeros(14), max_iterations=0)
    with pytest.raises(ValueError, match="tolerance must be a finite number above 0"):
        find_mode(heart(), np.zeros(14), tolerance=0.0)


def test_curvature_is_the_hessian(monkeypatch):
    target = heart()
    at = jnp.linspace(-1.0, 1.0, 14)
    energy = lambda at: -target.log_prior(at) - target.log_likelihoods(at, target.data).sum()  # noqa: E731
    expected = jax.hessian(energy)(at)
    monkeypatch.setattr(chunks, "TEMPORARY_BYTES", 16 * 20_000)
    found = curvature_at(target, at)
    assert found.is_dense
    assert found.is_positive
    np.testing.assert_allclose(found.matrix, expected, rtol=1e-4, atol=1e-4)
    spectrum, _ = found.whitened_by(found.matrix)
    np.testing.assert_allclose(spectrum.eigenvalues, 1.0, rtol=1e-6)
    np.testing.assert_allclose(
        found.factor @ found.factor.T, np.linalg.inv(found.matrix), rtol=1e-6, atol=1e-9
    )


def test_a_saddle_is_made_positive_and_says_so():
    found = curvature_at(amagold.Density(lambda at: at[0] * at[1] - at[2] ** 2), np.zeros(3))
    assert not found.is_positive
    assert np.all(np.linalg.eigvalsh(found.matrix) > 0)
    flat = curvature_at(amagold.Density(lambda at: 0.0 * jnp.sum(at)), np.zeros(2))
    assert not flat.is_positive
    assert np.all(np.isfinite(flat.factor))


@pytest.mark.parametrize(
    ("num_parameters", "num_examples", "is_dense"),
    [(256, 10**9, True), (2048, 20_000, True), (2048, 30_000, False)],
)
def test_a_whole_hessian_is_taken_where_it_is_worth_it(num_parameters, num_examples, is_dense):
    assert curvature_file.is_worth_it(num_parameters, num_examples) == is_dense


@pytest.mark.slow
def test_some_hundreds_of_parameters_have_a_whole_hessian():
    generator = np.random.default_rng(0)
    predictors = generator.normal(size=(900, 300)).astype(np.float32)
    target = amagold.models.logistic(
        predictors, generator.random(900) < 0.5, prior_scale=1.0, intercept=False
    )
    mode = find_mode(target, target.init)
    found = curvature_at(target, mode.position)
    assert found.is_dense
    rates = 1.0 / (
        1.0 + np.exp(-predictors.astype(np.float64) @ np.asarray(mode.position, np.float64))
    )
    exact = (predictors.T * (rates * (1.0 - rates))) @ predictors + np.eye(300)
    np.testing.assert_allclose(found.matrix, exact, rtol=1e-3, atol=1e-3 * np.abs(exact).max())


def test_many_parameters(monkeypatch):
    """Beyond that the diagonal and the ends of the whitened spectrum come from probes."""
    monkeypatch.setattr(curvature_file, "MOST_DENSE", 256)
    generator = np.random.default_rng(0)
    mixing = generator.normal(size=(400, 300))
    hessian = mixing.T @ mixing / 400 + np.diag(10.0 ** generator.uniform(-1, 2, 300))
    found = curvature_at(
        amagold.Density(lambda at: -0.5 * at @ jnp.asarray(hessian, jnp.float32) @ at),
        np.zeros(300),
    )
    assert not found.is_dense
    assert found.is_positive
    assert np.std(np.log(found.diagonal / np.diag(hessian))) < 0.25
    scales = 1.0 / np.sqrt(found.diagonal)
    exact = np.linalg.eigvalsh(hessian * np.outer(scales, scales))
    np.testing.assert_allclose(found.own_spectrum.eigenvalues.max(), exact.max(), rtol=0.05)
    np.testing.assert_allclose(found.own_spectrum.counts.sum(), 300, rtol=1e-5)


def test_starts_are_twice_as_wide_as_the_posterior():
    target = amagold.Density(lambda at: -0.5 * at @ jnp.array([[2.0, 1.0], [1.0, 3.0]]) @ at)
    mode = find_mode(target, np.ones(2))
    curvature = curvature_at(target, mode.position)
    starts = np.asarray(
        disperse(target, mode, curvature, 4000, jax.random.key(0)), np.float64
    ) - np.asarray(mode.position)
    products = starts[:, :, None] * starts[:, None, :] - 4.0 * np.linalg.inv(
        [[2.0, 1.0], [1.0, 3.0]]
    )
    assert worst(products.reshape(4000, 4)) <= 1.0
    again = disperse(target, mode, curvature, 4000, jax.random.key(0))
    np.testing.assert_array_equal(
        np.asarray(again) - np.asarray(mode.position), starts.astype(np.float32)
    )


def test_starts_stay_where_the_density_is_positive():
    target = amagold.Density(
        lambda at: jnp.sum(0.2 * jnp.log(at) - at), domain=lambda at: jnp.all(at > 0)
    )
    mode = find_mode(target, np.full(2, 1.0))
    starts = disperse(
        target, mode, curvature_at(target, mode.position), 100, jax.random.key(0), scale=5.0
    )
    assert np.all(np.asarray(starts) > 0)
    assert len(np.unique(np.asarray(starts)[:, 0])) == 100


def test_starts_without_a_mode_are_modest():
    target = amagold.Density(lambda at: jnp.sum(at["x"]))
    mode = find_mode(target, {"x": np.array([0.0, 9.0])})
    starts = disperse(target, mode, curvature_at(target, mode.position), 200, jax.random.key(0))
    spread = np.std(np.asarray(starts["x"]), axis=0)
    assert np.all(spread > [0.05, 0.5])
    assert np.all(spread < [0.2, 2.0])


def test_a_start_that_nothing_around_supports_is_the_mode():
    target = amagold.Density(lambda at: -0.5 * jnp.sum(at**2), domain=lambda at: jnp.all(at == 0))
    mode = Mode(jnp.zeros(2), True, 1)
    np.testing.assert_array_equal(
        disperse(target, mode, curvature_at(target, mode.position), 3, jax.random.key(0)),
        np.zeros((3, 2)),
    )


@pytest.mark.slow
def test_no_pass_over_the_data_is_made_twice(monkeypatch):
    """What the search for the mode found there serves the curvature and the reference."""
    from amagold.mode import _curvature, _derivatives, _newton, _reference

    seen = []

    def watched(target, position, *arguments):
        seen.append(tuple(np.asarray(trees.flatten(position)).tolist()))
        return _derivatives.derivatives_at(target, position, *arguments)

    for module in (_newton, _curvature, _reference):
        monkeypatch.setattr(module, "derivatives_at", watched)
    X, y = np.random.default_rng(0).normal(size=(2, 2_000, 3))
    target = amagold.models.logistic(X, (y[:, 0] > 0).astype(float))
    run = amagold.sample(target, 400, 100, seed=1, progress=False)
    assert run.sampler.gradient.known_reference() is not None
    assert len(seen) >= 2
    assert len(set(seen)) == len(seen)
