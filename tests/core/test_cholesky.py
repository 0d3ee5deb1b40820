"""The factor and its inverse, against NumPy in float64."""

import jax
import numpy as np
import pytest

from amagold.core.cholesky import factor_and_inverse


@pytest.mark.parametrize("size", [1, 3, 32, 33, 100])
def test_factor_and_inverse_are_numpys(size):
    generator = np.random.default_rng(size)
    some = generator.normal(size=(3, size, 2 * size))
    matrices = some @ some.transpose(0, 2, 1) / (2 * size)
    factors, inverses = jax.jit(jax.vmap(factor_and_inverse))(matrices.astype(np.float32))
    truth = np.linalg.cholesky(matrices)
    np.testing.assert_allclose(factors, truth, atol=2e-5)
    np.testing.assert_allclose(inverses, np.linalg.inv(truth), atol=5e-4)


def test_what_is_not_positive_is_not_finite():
    factor, _ = factor_and_inverse(np.array([[1.0, 2.0], [2.0, 1.0]], np.float32))
    assert not np.isfinite(np.asarray(factor)).all()
