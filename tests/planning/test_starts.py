"""Starts around places where the Gaussian says little stay where the density is not absurd."""

import jax
import jax.numpy as jnp
import numpy as np

import amagold
from amagold.mode._regions import Region
from amagold.planning import _starts as starts

SIZE = 3
WIDE = 10.0  # standard deviations that the curvature at zero stands for
NUM_CHAINS = 16


def walled(position):
    """Flat about zero, and steep beyond one: the curvature at zero tells nothing of it."""
    return -0.5 * jnp.sum((position / WIDE) ** 2) - jnp.sum(position**8)


def started():
    target = amagold.Density(walled, init=jnp.zeros(SIZE))
    region = Region(jnp.zeros(SIZE), np.zeros(SIZE), WIDE * np.eye(SIZE), 0.0)
    found = starts.disperse_over(target, [region], NUM_CHAINS, jax.random.key(0))
    return np.asarray(jax.vmap(walled)(found)), np.asarray(found)


def test_starts_fall_no_further_than_a_gaussian_has_it():
    densities, found = started()
    assert densities.min() > -(0.5 * starts.STEEPER * SIZE + starts.STEEPER_BY)
    assert found.std() > 0.2, "and are not all at one place"


def test_any_finite_density_would_be_taken_without_that(monkeypatch):
    monkeypatch.setattr(starts, "STEEPER_BY", np.inf)
    assert started()[0].min() < -1e4
