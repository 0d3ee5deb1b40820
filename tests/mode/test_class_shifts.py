"""What is the same in all classes follows the prior, however wide it is."""

import dataclasses

import jax
import numpy as np
import pytest

from amagold import models
from amagold.mode._class_shifts import class_shifts
from amagold.mode._derivatives import derivatives_at, whole_hessian
from amagold.mode._mode_search import find_mode

NUM_CLASSES = 4


@pytest.fixture(scope="module")
def rows():
    generator = np.random.default_rng(7)
    X = generator.normal(size=(20_000, 3))
    z = X @ generator.normal(0.0, 0.7, (3, NUM_CLASSES))
    return X, np.argmax(z + generator.gumbel(size=z.shape), axis=1)


@pytest.mark.parametrize("prior_scale", [1.0, 30.0, 1e3, 1e4])
def test_wide_priors_have_a_mode(rows, prior_scale):
    target = models.softmax(*rows, prior_scale=prior_scale)
    found = find_mode(target, target.init)
    assert found.is_converged
    coefficients = np.asarray(found.position, np.float64)
    # the prior of what all classes share is centred at zero; float32 sums are that exact
    np.testing.assert_allclose(coefficients.mean(axis=1), 0.0, atol=1e-4 * prior_scale)
    of_data = derivatives_at(target, found.position, 2).hessian
    curvature = np.linalg.eigvalsh(whole_hessian(target, found.position, of_data))
    assert curvature[0] > 0.0


def test_rounding_would_hide_a_wide_prior(rows):
    """The planted bug: without knowing that the data are flat there, the search finds no mode."""
    target = models.softmax(*rows, prior_scale=1e3)
    forgetful = dataclasses.replace(target, bounds=target.bounds._replace(ignores_shifts=False))
    assert class_shifts(forgetful, forgetful.init) is None
    assert not find_mode(forgetful, forgetful.init).is_converged


def test_shifts_are_where_the_likelihood_is_flat(rows):
    target = models.softmax(*rows, prior_scale=1.0)
    shifts = class_shifts(target, target.init)
    basis = shifts.basis
    np.testing.assert_allclose(basis.T @ basis, np.eye(len(basis)), atol=1e-12)
    along = jax.tree.map(np.asarray, basis[:, 0].reshape(target.init.shape))
    at = np.random.default_rng(1).normal(size=target.init.shape).astype(np.float32)
    few = jax.tree.map(lambda leaf: leaf[:50], target.data)
    moved = (at + 3.0 * along).astype(np.float32)
    np.testing.assert_allclose(
        target.log_likelihoods(at, few), target.log_likelihoods(moved, few), atol=1e-4
    )
    full = np.random.default_rng(2).normal(size=(len(basis), len(basis)))
    full = full + full.T
    known = basis.T @ shifts.known_curvature(full) @ basis
    shifted, others = np.arange(len(basis)) % NUM_CLASSES == 0, np.arange(len(basis)) % NUM_CLASSES
    np.testing.assert_allclose(known[shifted], 0.0, atol=1e-12)
    kept = np.ix_(others > 0, others > 0)
    np.testing.assert_allclose(known[kept], (basis.T @ full @ basis)[kept], atol=1e-12)
