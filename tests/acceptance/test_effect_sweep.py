"""Sweeps over mixed models: exact draws stay exact, planted bugs are seen, and what is known
beforehand is what all rows say.
"""

import dataclasses
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_effects import SIZES, effect_features, exact_effects, mixed_target
from false_alarms import PLANTED, worst

from amagold.acceptance import _group_visit
from amagold.acceptance._effect_setup import untuned_effects
from amagold.acceptance._effect_state import precision_of
from amagold.acceptance._effect_sweep import EffectSweep
from amagold.acceptance._group_visit import stream_of
from amagold.core import trees
from amagold.core.compiling import ONCE, jit
from amagold.gradients import full as full_gradient
from amagold.mode._effect_mode import find_reference
from amagold.mode._effect_sums import sums_at
from amagold.samplers import Sampler
from amagold.trajectory._rest import Rest

NUM_DRAWS, FEWER = 8_000, 1_500


@cache
def sweep_of(family, away=0.25):
    """About a place that is off the mode, its scale too, with turns that are no fresh draws."""
    target = mixed_target(family)
    place = dict(find_reference(target).position)
    signs = np.where(np.arange(len(SIZES)) % 2, 1.0, -1.0)
    place["theta"] = (place["theta"] + 0.5 * away).astype(np.float32)
    place["1|g"] = (place["1|g"] + away * signs).astype(np.float32)
    place["1|g_sigma"] = np.float32(place["1|g_sigma"] + away)
    sweep = untuned_effects(target, sums_at(target, place))
    (terms,) = sweep.factors
    spread = jnp.float32(0.5)
    terms = dataclasses.replace(terms, effect_spread=spread, scale_spread=spread)
    return dataclasses.replace(
        sweep, angle=jnp.float32(1.1), slope_spread=spread, factors=(terms,), num_turns=2
    )


@jit(ONCE)
def _run(sampler, positions, key):
    states = jax.vmap(sampler.init)(positions)

    def transition(states, key):
        keys = jax.random.split(key, len(positions["theta"]))
        return jax.vmap(sampler.step)(keys, states)

    return jax.lax.scan(transition, states, jax.random.split(key, 3))


def moved(family, sweep, num_draws=NUM_DRAWS):
    draws = exact_effects(family, num_draws)
    sampler = Sampler(mixed_target(family), Rest(), full_gradient(), sweep, 1, True)
    states, info = _run(sampler, draws, jax.random.key(3))
    return worst(effect_features(states.position) - effect_features(draws)), info


@pytest.mark.parametrize(
    "family",
    [
        "logistic",
        *(
            pytest.param(each, marks=pytest.mark.slow)
            # the bounds of the first grow
            for each in ("poisson", "probit", "binomial", "negative_binomial")
        ),
    ],
)
def test_exact_draws_stay_exact(family):
    found, info = moved(family, sweep_of(family), FEWER if family == "logistic" else NUM_DRAWS)
    assert found < 1.0
    assert int(info.broken_bound.max()) == -1
    assert 0.2 < float(info.acceptance_rate.mean()) < 0.99
    rows = np.asarray(info.num_energy_examples)
    # of the levels, two turns of the slopes, six walks of the scale
    num_tests = 1 + 2 + 6
    assert 0.0 < rows.mean() < 0.6 * num_tests * sum(SIZES), "not most of all they could ask"


@trees.record()
class HalvedRates(EffectSweep):
    """Half as many arrivals as the bounds need."""

    def visit(self, *args):
        def halved(rows, question):
            stream = stream_of(rows, question)
            return stream._replace(rate=0.5 * stream.rate)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_group_visit, "stream_of", halved)
            return super().visit(*args)


@trees.record()
class NarrowBounds(EffectSweep):
    """Rows may differ by more than their bounds say."""

    def row_bounds(self, number, here, there):
        return 0.1 * super().row_bounds(number, here, there)


@trees.record()
class NoJacobian(EffectSweep):
    """Whitened effects are taken for coordinates without a volume."""

    def evidence(self, number, state, known):
        volume = jnp.sum(jnp.log(jnp.diagonal(known.factor, axis1=-2, axis2=-1)), axis=-1)
        return super().evidence(number, state, known) - volume


@trees.record()
class LeftBehind(EffectSweep):
    """Effects do not move along as the ratio thinks: the centring of another model."""

    def move_slopes(self, target, draws, state):
        moved, *found = super().move_slopes(target, draws, state)
        left = 2.0 * self.factors[0].shifts @ (moved.slopes - state.slopes)
        return moved.with_effects(0, moved.effects[0] + left), *found


@trees.record()
class FollowingCenter(EffectSweep):
    """The center of turns follows the chain."""

    def slopes_given(self, state):
        found = super().slopes_given(state)
        return found._replace(tilt=found.tilt - 0.5 * found.matrix @ state.slopes)


@trees.record()
class OneWayBounds(EffectSweep):
    """Bounds, and so what is scanned, are others on the way back."""

    def row_bounds(self, number, here, there):
        bounds = super().row_bounds(number, here, there)
        own = jnp.abs(here.effects[0][:, 0]) < jnp.abs(there.effects[0][:, 0])
        return bounds * jnp.where(own, 0.2, 1.0)


@trees.record()
class NeighboursTests(EffectSweep):
    """Each level is accepted by what the rows of its neighbour say."""

    def visit(self, number, target, here, there, bounds, kappa, key):
        found = super().visit(number, target, here, there, bounds, kappa, key)
        return found._replace(log_ratios=jnp.roll(found.log_ratios, 1))


@trees.record()
class PriorOfScales(EffectSweep):
    """The scales' own prior is left out where effects are fixed."""

    def redraw_scales(self, number, target, draws, state):
        draws = draws._replace(gamma_tests=(-jnp.float32(1e9),))
        return super().redraw_scales(number, target, draws, state)


BROKEN = (
    NoJacobian,
    HalvedRates,
    NarrowBounds,
    LeftBehind,
    FollowingCenter,
    OneWayBounds,
    NeighboursTests,
    PriorOfScales,
)


def planted(broken, sweep):
    values = {field.name: getattr(sweep, field.name) for field in dataclasses.fields(EffectSweep)}
    return broken(**values)


@pytest.mark.slow
@pytest.mark.parametrize(
    "broken",
    BROKEN,
)
def test_planted_bugs_are_seen(broken):
    assert moved("logistic", planted(broken, sweep_of("logistic")))[0] > PLANTED


def test_what_is_known_is_what_all_rows_say():
    """The energy of all rows is the sweep's to second order, and remainders are third order."""
    target, sweep = mixed_target("logistic"), sweep_of("logistic")

    def energy(position):
        return -float(jnp.sum(target.log_likelihoods(position, target.data)))

    generator = np.random.default_rng(0)
    center = sweep.reference.position
    errors = []
    for size in (0.1, 0.05):
        away = {
            name: size * np.where(generator.random(np.shape(values)) < 0.5, -1.0, 1.0)
            for name, values in center.items()
        }
        generator = np.random.default_rng(0)
        there = {name: center[name] + jnp.float32(away[name]) for name in center}
        state = sweep.remember(target, there)
        known = float(sweep.rows_energy(state))
        errors.append(abs(energy(there) - energy(center) - known))
        np.testing.assert_allclose(sweep.position(state)["1|g"], there["1|g"], atol=1e-5)
    assert errors[0] < 0.02
    assert errors[1] < 0.25 * errors[0] + 2e-4


def test_bounds_hold_for_every_row():
    """Of pairs of positions far apart too, whatever moves; and they are symmetric."""
    family = "logistic"
    target, sweep = mixed_target(family), sweep_of(family)
    draws = exact_effects(family, 200)
    positions = [
        {name: jnp.asarray(values[number]) for name, values in draws.items()}
        for number in range(12)
    ]
    states = [sweep.remember(target, position) for position in positions]
    codes = np.asarray(target.data.codes[0])
    largest = 0.0
    for here, there in zip(states[:6], states[6:], strict=True):
        for other in (
            here.with_effects(0, there.effects[0]),
            here._replace(slopes=there.slopes),
            there,
        ):
            bounds = np.asarray(sweep.row_bounds(0, here, other), np.float64)
            np.testing.assert_array_equal(bounds, np.asarray(sweep.row_bounds(0, other, here)))
            moves = jax.tree.map(lambda *both: jnp.stack(both), sweep.away(here), sweep.away(other))
            found = sweep.differences(target, moves, target.data)
            differences = np.abs(np.asarray(found.value, np.float64))
            assert (differences <= bounds[codes] * 1.001 + np.asarray(found.rounding)).all()
            largest = max(largest, float(np.max(differences / (bounds[codes] + 1e-6))))
    assert largest > 0.3, "bounds that are never near would say nothing"


def test_scales_are_known_by_their_precision():
    sweep, target = sweep_of("logistic"), mixed_target("logistic")
    state = sweep.remember(target, sweep.reference.position)
    np.testing.assert_allclose(
        precision_of(state, 0)[0, 0],
        np.exp(-2.0 * sweep.reference.position["1|g_sigma"]),
        rtol=1e-5,
    )
