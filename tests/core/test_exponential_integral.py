"""The scaled exponential integral, its derivative and its inverse, against scipy in float64."""

import jax
import numpy as np
import pytest
from scipy import special

from amagold.core.exponential_integral import log_scaled_e1, tail_growth

PLACES = np.logspace(-28.0, 2.0, 301).astype(np.float32)


def truth(x):
    return np.log(special.exp1(x)) + x


def test_values_are_scipys():
    found = np.asarray(log_scaled_e1(PLACES), np.float64)
    np.testing.assert_allclose(found, truth(PLACES.astype(np.float64)), atol=1e-6)


def test_far_out_it_is_the_asymptotic_series():
    x = np.logspace(3.0, 12.0, 50)
    found = np.asarray(log_scaled_e1(x.astype(np.float32)), np.float64)
    np.testing.assert_allclose(found, -np.log(x) - 1.0 / x, atol=2e-6)


def test_derivatives_are_those_of_the_values():
    found = np.asarray(jax.vmap(jax.grad(log_scaled_e1))(PLACES), np.float64)
    x = PLACES.astype(np.float64)
    np.testing.assert_allclose(found, 1.0 - np.exp(-truth(x)) / x, rtol=2e-5)
    # where one minus nearly one would be left with rounding
    assert float(jax.grad(log_scaled_e1)(np.float32(1e6))) == pytest.approx(-1e-6, rel=1e-4)


def test_nothing_is_lost_at_the_pole():
    assert np.isfinite(float(log_scaled_e1(np.float32(0.0))))
    assert float(jax.grad(log_scaled_e1)(np.float32(0.0))) == 0.0


@pytest.mark.parametrize("x", [1e-25, 1e-9, 1e-3, 0.3, 1.0, 4.0, 90.0])
def test_growth_inverts_the_integral(x):
    share = np.random.default_rng(0).uniform(1e-7, 1.0, 1000).astype(np.float32)
    growth = np.asarray(tail_growth(np.full(1000, x, np.float32), share), np.float64)
    reached = np.exp(truth(x * np.exp(growth)) - truth(x) - x * np.expm1(growth))
    np.testing.assert_allclose(reached, share, atol=1e-6)
    assert growth.max() - growth.min() > 0.01
