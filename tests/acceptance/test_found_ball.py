"""Tests whose bounds are found hold within a ball: beyond it all data are looked at, both ways
alike.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_target import COUNTS, PREDICTORS, exact_draws, features, log_prior, move
from false_alarms import PLANTED, worst

import amagold
from amagold import acceptance, gradients
from amagold.acceptance._tuna import TunaTest
from amagold.core import trees
from amagold.target import _jet_program as program, _smooth_functions as smooth
from amagold.target._intervals import scaled

CENTER = np.array([0.1, 0.5], np.float32)
DATA = {"x": PREDICTORS, "y": COUNTS}
NEAR = -0.4  # a radius of one standard deviation, which positions cross all the time


def outcome(z, example):
    return example["y"] * z - jnp.exp(z)


def target(spare=NEAR):
    found = amagold.Posterior(amagold.LinearLikelihood(outcome, "x"), log_prior, DATA)
    assert found.bounds is not None
    within = dataclasses.replace(found.bounds.within, spare=spare)
    return dataclasses.replace(found, bounds=found.bounds._replace(within=within))


def sampler_with(change=lambda test: test, spare=NEAR, order=0):
    """Of order 0, with as few arrivals as are allowed: the test on a few examples then accepts far
    less than the one on all data, so that it matters which of them is taken.
    """
    sampler = amagold.amagold(
        target(spare),
        step_size=0.25,
        friction=0.3,
        num_steps=3,
        gradient=gradients.control_variate(2, 2, center=CENTER),
        acceptance=acceptance.tuna(order, block_size=16, noise=100.0, most=400.0),
    )
    return dataclasses.replace(sampler, acceptance=change(sampler.acceptance))


def moved(sampler, num_chains=30_000):
    draws = exact_draws(200_000)[:num_chains]
    _, states, info = move(sampler, draws, 5, 1)
    return worst(np.asarray(features(states.position) - features(jnp.asarray(draws)))), info


@pytest.mark.slow
@pytest.mark.parametrize("order", [0, 2])
def test_exact_draws_stay_exact_across_the_ball(order):
    found, info = moved(sampler_with(order=order))
    share = float(jnp.mean(info.num_energy_examples == len(COUNTS)))
    assert 0.1 < share < 0.9, "both ways are taken"
    assert int(info.broken_bound.max()) == -1
    assert found < 1.0


@trees.record()
class NoBall(TunaTest):
    """Bounds of a ball, believed everywhere."""

    def _magnitude(self, here, there):
        whole = self.bounds._replace(within=None)
        return dataclasses.replace(as_kind(TunaTest, self), bounds=whole)._magnitude(here, there)


@trees.record()
class OneWay(TunaTest):
    """Whether all data are looked at depends on the proposed position alone."""

    def _magnitude(self, here, there):
        near = here._replace(whitened=jnp.zeros_like(here.whitened))
        is_near = jnp.isfinite(super()._magnitude(near, there))
        whole = dataclasses.replace(
            as_kind(TunaTest, self), bounds=self.bounds._replace(within=None)
        )
        return jnp.where(is_near, whole._magnitude(here, there), jnp.inf)


def as_kind(kind, test):
    values = {field.name: getattr(test, field.name) for field in dataclasses.fields(test)}
    return kind(**values)


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "spare"), [(NoBall, -1.3), (OneWay, NEAR)])
def test_a_ball_left_out_or_of_one_way_is_seen(kind, spare):
    def change(test):
        return as_kind(kind, test)

    assert moved(sampler_with(change, spare), num_chains=60_000)[0] > PLANTED


def test_bounds_believed_beyond_their_ball_stop_the_run():
    sampler = sampler_with(lambda test: as_kind(NoBall, test))
    with pytest.raises(ValueError, match=r"example [0-7] broke its bound in chain"):
        amagold.run_chains(sampler, jax.random.key(0), exact_draws(200_000)[:64], 50)


@pytest.mark.slow
def test_a_wrong_rule_stops_the_run(monkeypatch):
    def too_small(space, params, x):
        value, *others = smooth.exponential(x.value)
        return program.rules.compose([value, *(scaled(part, 0.1) for part in others)], x)

    monkeypatch.setitem(program.RULES, "exp", too_small)
    jax.clear_caches()
    sampler = sampler_with(spare=3.0)
    with pytest.raises(ValueError, match=r"example [0-7] broke its bound in chain"):
        amagold.run_chains(sampler, jax.random.key(0), exact_draws(200_000)[:64], 50)
    jax.clear_caches()
