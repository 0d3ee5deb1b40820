"""The Gaussian of the coefficients, whether effects follow as the reference or as their own scales
have it: of numbers with Gaussian noise it is the energy itself.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from amagold import models
from amagold.acceptance import _effect_expansion
from amagold.acceptance._effect_setup import untuned_effects
from amagold.mode._effect_mode import find_reference

ROWS, LEVELS = 60, 6


def target_of(num_effects):
    generator = np.random.default_rng(5)
    x, group = generator.normal(size=(ROWS, 2)), np.arange(ROWS) % LEVELS
    y = x @ [0.5, -0.3] + generator.normal(size=LEVELS)[group] + generator.normal(size=ROWS)
    columns = None if num_effects == 1 else np.stack([np.ones(ROWS), x[:, 0]], axis=1)
    return models.mixed(x, y, {"g": models.Group(group, columns)}, "linear")


def energies(target, sweep, states):
    positions = jax.vmap(sweep.position)(states)
    rows = jax.vmap(lambda at: jnp.sum(target.log_likelihoods(at, target.data)))(positions)
    return -np.asarray(rows + jax.vmap(target.log_prior)(positions), np.float64)


@pytest.mark.parametrize("most", [0, 2**16])
@pytest.mark.parametrize("num_effects", [1, 2])
@pytest.mark.parametrize("away", [-3.0, -0.5, 1.0])
def test_it_is_the_energy_along_the_way(away, num_effects, most, monkeypatch):
    monkeypatch.setattr(_effect_expansion, "MOST_FOLLOWED", most)
    target = target_of(num_effects)
    sweep = untuned_effects(target, find_reference(target))
    generator = np.random.default_rng(6)
    state = sweep.remember(target, sweep.reference.position)
    scales = tuple(each + jnp.float32(away) for each in state.scales)
    own = generator.normal(size=state.effects[0].shape) * np.exp(np.asarray(scales[0]))
    here = state._replace(
        slopes=jnp.asarray(generator.normal(size=3), jnp.float32),
        effects=(jnp.asarray(own, jnp.float32),),
        scales=scales,
        free=tuple(each + 0.4 for each in state.free),
        noise=jnp.float32(0.3),
    )
    known = sweep.slopes_given(here)
    assert (known.follow is None) == (most == 0)
    there = here._replace(slopes=here.slopes + jnp.asarray(generator.normal(size=3), jnp.float32))
    if known.follow is not None:
        there = there.with_effects(0, here.effects[0] + known.follow @ (there.slopes - here.slopes))
    states = jax.tree.map(lambda *both: jnp.stack(both), here, there)
    found = energies(target, sweep, states)
    slopes = np.asarray(states.slopes, np.float64)
    slope, matrix = (np.asarray(each, np.float64) for each in (known.slope, known.matrix))
    expected = slopes @ slope + 0.5 * np.einsum("sp,pq,sq->s", slopes, matrix, slopes)
    np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=2e-3, atol=2e-3)


def test_coefficients_given_scales_are_independent_draws():
    """Where effects follow; with the reference's scales they hold each other up."""
    target = target_of(2)
    sweep = untuned_effects(target, find_reference(target))
    state = sweep.remember(target, sweep.reference.position)
    narrow = state._replace(scales=tuple(each - 3.0 for each in state.scales))
    moved = narrow.with_effects(0, narrow.effects[0] + 0.1)
    ours, other = (sweep.slopes_given(each) for each in (narrow, moved))
    np.testing.assert_allclose(ours.slope, other.slope, atol=1e-5)
