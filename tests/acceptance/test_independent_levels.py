"""Levels stay independent of each other: kappa of a level may not depend on where others are.

Given the others each level's test leaves its distribution alone whatever kappa is, so that such a
bug hides where kappa matters little. Remainders of a level's rows are made large here and cancel:
what they leave is Gaussian, tests of kappa = 1 refuse often and scans never.
"""

import dataclasses
from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from false_alarms import PLANTED, worst

from amagold import models
from amagold.acceptance._effect_setup import untuned_effects
from amagold.acceptance._effect_state import precision_of
from amagold.acceptance._effect_sweep import EffectSweep
from amagold.acceptance._effect_visits import counts_of
from amagold.acceptance._remainders import Remainder
from amagold.core import trees
from amagold.core.small_matrices import solve_upper
from amagold.mode._effect_mode import find_reference
from amagold.mode._effect_sums import sums_at

NUM_LEVELS, ROWS, NUM_CHAINS, NUM_MOVES = 400, 10, 60, 3
LOUDNESS = 0.49  # bounds stay below one, so that kappa = 1 scans nothing
SCAN = 1e4  # kappa of a level all of whose rows are looked at


@trees.record()
class CancellingRows(EffectSweep):
    """D_i = +- (c tanh(eta*) - c tanh(eta)), of half of a level's rows with a plus."""

    def row_bounds(self, number, here, there):
        return jnp.abs(loud(there.effects[0]) - loud(here.effects[0]))[:, 0]

    def differences(self, target, moves, rows):
        change = loud(moves["1|g"][1]) - loud(moves["1|g"][0])
        signs = rows.own.sign
        return Remainder(signs * change.reshape(-1)[rows.codes[0]], jnp.zeros_like(signs))


@trees.record()
class KappaByNeighbours(CancellingRows):
    """Whether a level is scanned depends on the place of its neighbour."""

    def visit(self, number, target, here, there, bounds, kappa, key):
        pairs = here.effects[0].reshape(-1, 2)
        kappa = jnp.where(jnp.flip(pairs, axis=1).reshape(-1) > 0.0, SCAN, kappa)
        return super().visit(number, target, here, there, bounds, kappa, key)


@trees.record()
class KappaByAllRates(CancellingRows):
    """The sum of all levels' rates is the same whichever of them are exchanged: exact too."""

    def visit(self, number, target, here, there, bounds, kappa, key):
        rate = jnp.sum(counts_of(self.factors[0]) * bounds)
        kappa = jnp.where(jnp.floor(rate) % 2.0 == 0.0, SCAN, kappa)
        return super().visit(number, target, here, there, bounds, kappa, key)


def loud(effects):
    return LOUDNESS * jnp.tanh(effects)


@cache
def target_and_sweep():
    group = np.repeat(np.arange(NUM_LEVELS), ROWS).astype(np.int32)
    y = np.tile([0.0, 1.0], NUM_LEVELS * ROWS // 2)
    x = np.random.default_rng(0).normal(size=(len(y), 1))
    groups = {"1|g": models.Group(group, num_levels=NUM_LEVELS)}
    target = models.mixed(x, y, groups, "logistic", prior_scale=1.0, standardize=False)
    place = dict(find_reference(target).position)
    place["1|g_sigma"] = np.float32(0.0)
    sweep = untuned_effects(target, sums_at(target, place))
    (terms,) = sweep.factors
    terms = dataclasses.replace(terms, effect_spread=jnp.float32(0.0))
    return target, dataclasses.replace(sweep, factors=(terms,))


def moved(kind):
    """Levels' places in standard deviations before and after, drawn from their Gaussian at first;
    and the share that was accepted.
    """
    target, sweep = target_and_sweep()
    values = {field.name: getattr(sweep, field.name) for field in dataclasses.fields(EffectSweep)}
    sweep = kind(**values)
    center = sweep.remember(target, sweep.reference.position)
    known = sweep.conditional(0, center, precision_of(center, 0))

    @jax.jit
    def run(key):
        first, key = jax.random.split(key)
        noise = jax.random.normal(first, (NUM_CHAINS, NUM_LEVELS, 1))
        begun = known.mean + jax.vmap(lambda each: solve_upper(known.factor, each))(noise)

        def move(effects, key):
            draws = sweep.draw(key)
            afresh = draws._replace(all_walk=jnp.bool_(False), skewed_walk=jnp.bool_(False))
            there, found, rate = sweep.move_effects(
                0, target, afresh, center.with_effects(0, effects)
            )
            return there.effects[0], (rate, found.broken_bound)

        def move_all(effects, key):
            return jax.vmap(move)(effects, jax.random.split(key, NUM_CHAINS))

        ended, told = jax.lax.scan(move_all, begun, jax.random.split(key, NUM_MOVES))
        return begun - known.mean, ended - known.mean, told

    begun, ended, (rate, broken) = run(jax.random.key(0))
    assert int(broken.max()) == -1
    return np.asarray(begun)[..., 0], np.asarray(ended)[..., 0], float(rate.mean())


def features(effects):
    """Of each chain: signs of neighbours together, signs, and how wide levels lie."""
    signs = np.sign(effects)
    together = (signs[:, ::2] * signs[:, 1::2]).mean(axis=1)
    return np.stack([together, signs.mean(axis=1), (effects**2).mean(axis=1)], axis=1)


@pytest.mark.parametrize("kind", [CancellingRows, KappaByAllRates])
def test_levels_stay_independent(kind):
    begun, ended, rate = moved(kind)
    assert worst(features(ended) - features(begun)) < 1.0
    assert 0.1 < rate < 0.9, "else kappa would not matter"


def test_kappa_by_neighbours_ties_levels_together():
    begun, ended, _ = moved(KappaByNeighbours)
    assert worst(features(ended) - features(begun)) > PLANTED
