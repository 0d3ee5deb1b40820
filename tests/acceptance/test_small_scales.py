"""Where outcomes know nothing of groups, the scale of their effects may come to nothing, and does
so as its prior has it: a density that is flat at zero, however small the scale is.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from false_alarms import PLANTED, threshold
from scipy.stats import binom, norm

from amagold import models, priors
from amagold.acceptance._effect_setup import untuned_effects
from amagold.acceptance._effect_state import precision_of
from amagold.acceptance._effect_sweep import EffectSweep
from amagold.core import trees
from amagold.core.compiling import ONCE, jit
from amagold.core.small_matrices import cholesky, log_determinant, solve_lower, times
from amagold.mode._effect_mode import find_reference

NUM_ROWS, LEVELS, NUM_CHAINS, NUM_SWEEPS, BURN_IN = 90, 9, 1024, 120, 30
SMALL, SHARE = 0.06, 0.015  # what scales are small, and what part of that is tiny


def target_of(shape, family):
    generator = np.random.default_rng(5)
    x = generator.normal(size=NUM_ROWS).astype(np.float32)
    group = np.arange(NUM_ROWS) % LEVELS
    groups = {"g": models.Group(group)}
    if shape == "nested":
        groups = {"g": models.Group(group // 3), "h": models.Group(group)}
    if shape == "slopes":
        columns = np.stack([np.ones(NUM_ROWS), x], axis=1)
        groups = {"g": models.Group(group, columns / np.sqrt(np.mean(columns**2, axis=0)))}
    y = generator.normal(size=NUM_ROWS) if family == "linear" else np.arange(NUM_ROWS) % 2
    options = {"prior_scale": 1.0, "scale_prior": priors.normal(0.0, 0.5), "standardize": False}
    return models.mixed(x[:, None], y * 1.0, groups, family, **options)


@jit(ONCE)
def _log_scales(target, sweep, position, key):
    def chain(key):
        def step(state, key):
            state, _ = sweep.sweep(target, sweep.draw(key), state)
            return state, jnp.concatenate(state.scales)

        state = sweep.remember(target, position)
        return jax.lax.scan(step, state, jax.random.split(key, NUM_SWEEPS))[1]

    return jax.vmap(chain)(jax.random.split(key, NUM_CHAINS))


def excess(shape, family, kind=EffectSweep):
    """How many more chains end at tiny scales than small ones let expect, in units of the
    threshold.
    """
    target = target_of(shape, family)
    sums = find_reference(target)
    sweep = untuned_effects(target, sums)
    sweep = kind(**{name: getattr(sweep, name) for name in sweep.__dataclass_fields__})
    position = {name: jnp.asarray(value) for name, value in sums.position.items()}
    found = _log_scales(target, sweep, position, jax.random.key(0))
    scales = np.exp(np.asarray(found, np.float64)[:, BURN_IN:])
    is_tiny = scales[:, -1] < SHARE * SMALL
    worst = 0.0
    for each in range(scales.shape[-1]):
        expected = SHARE * (scales[:, :, each] < SMALL).mean()
        assert expected * NUM_CHAINS > 1.0
        chance = binom.sf(is_tiny[:, each].sum() - 1, NUM_CHAINS, expected)
        worst = max(worst, norm.isf(chance) / threshold(scales.shape[-1]))
    return float(worst)


@pytest.mark.few(1)
@pytest.mark.parametrize("family", ["linear", "logistic"])
@pytest.mark.parametrize("shape", ["one", "slopes", "nested"])
def test_small_scales_are_as_likely_as_their_prior_has_it(shape, family):
    assert excess(shape, family) < 1.0


@trees.record()
class Cancelling(EffectSweep):
    """The energy of a scale as the difference of two numbers that grow without end as it falls."""

    def evidence(self, number, state, known):
        terms, precision = self.factors[number], precision_of(state, number)
        apart = terms.center - terms.shifts @ state.slopes
        own = jnp.sum(apart * times(precision, apart), axis=-1)
        gained = jnp.sum(solve_lower(known.factor, known.slope) ** 2, axis=-1)
        logs = log_determinant(known.factor) - log_determinant(cholesky(precision))
        return 0.5 * (own - gained + logs)


@pytest.mark.slow
@pytest.mark.parametrize("family", ["linear", "logistic"])
def test_rounding_that_makes_scales_vanish_is_seen(family):
    assert excess("one", family, Cancelling) > PLANTED
