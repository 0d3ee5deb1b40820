"""The exact test by levels: rows come as often as their bounds say, exact draws stay exact, and
planted bugs are seen.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from coded_tables import coded
from false_alarms import PLANTED, threshold
from leveled_posteriors import CASES, COUNTED, one_factor, one_factor_density
from quadrature import exact, moved

import amagold
from amagold import acceptance, models
from amagold.acceptance._level_moves import level_moves
from amagold.acceptance._level_rows import cell_rows
from amagold.acceptance._level_test import NUM_WORDS, LevelTest
from amagold.acceptance._remainders import differences_and_rounding
from amagold.core import trees
from amagold.gradients import Expansion
from amagold.mode._derivatives import whole_hessian
from amagold.mode._mean_slope import mean_slope
from amagold.mode._mode_search import find_mode
from amagold.mode._reference import reference_at
from amagold.trajectory import Rotation
from amagold.trajectory._mass_matrix import as_mass

NUM_DRAWS = 30_000


def sampler_of(case, *, has_rare=True, num_steps=1):
    """Turns about a place that is not quite the mode, with a test about it."""
    target = CASES[case].model()
    place = jnp.array(CASES[case].reference, jnp.float32)
    reference = reference_at(target, trees.unflatten_like(place, target.init), 2)
    test = acceptance.tuna(most=CASES[case].most).bind(target, reference)
    assert isinstance(test, LevelTest)
    assert test.rare is not None
    # few at a time: all chains have theirs in memory together
    test = dataclasses.replace(test, block_size=16, rare=test.rare if has_rare else None)
    tilt, mean = mean_slope(target, reference, test.rare)
    mass = as_mass(whole_hessian(target, reference.position, reference.hessian))
    gradient = Expansion(reference=reference, tilt=tilt, rare=test.rare)
    turn = Rotation(1.2 / num_steps, mass, mean)
    return amagold.amortized(target, turn, num_steps, gradient, test)


def moved_by(case, sampler, num_draws=NUM_DRAWS):
    return moved(exact(CASES[case].density, *CASES[case].ranges), sampler, num_draws)


@pytest.mark.slow
@pytest.mark.parametrize("has_rare", [True, False])
@pytest.mark.parametrize("case", CASES)
def test_exact_draws_stay_exact(case, has_rare):
    found = moved_by(case, sampler_of(case, has_rare=has_rare, num_steps=2))
    assert 0.3 < float(found.info.acceptance_rate.mean()) < 0.999
    assert int(found.info.broken_bound.max()) == -1
    assert float(found.info.num_energy_examples.mean()) > 1.0, "rows are looked at"
    assert found.worst < 1.0


def test_exact_draws_stay_exact_by_levels():
    found = moved_by("one factor", sampler_of("one factor"), 5_000)
    assert int(found.info.broken_bound.max()) == -1
    assert found.worst < 1.0


@trees.record()
class FewerArrivals(LevelTest):
    """Half as many arrivals as the bounds need."""

    def rates(self, here, there):
        found = super().rates(here, there)
        return found._replace(total=0.5 * found.total)


@trees.record()
class ShorterMoves(LevelTest):
    """Levels count as having moved less than they have."""

    def remember(self, target, position):
        found = super().remember(target, position)
        return found._replace(moves=0.4 * found.moves)


@trees.record()
class RareTwice(LevelTest):
    """Rows of rare levels arrive although their remainders are known."""

    def candidates(self, target, rates, words, is_read):
        without = dataclasses.replace(self, rare=None)
        return LevelTest.candidates(without, target, rates, words, is_read)


@trees.record()
class RareForgotten(LevelTest):
    """Their remainders are left out."""

    def remember(self, target, position):
        return LevelTest.remember(dataclasses.replace(self, rare=None), target, position)


@trees.record()
class SharedForgotten(LevelTest):
    """What all rows share counts as not having moved."""

    def remember(self, target, position):
        found = super().remember(target, position)
        away = self.reference.away(position).at[-self.bounds.predictor.num_shared :].set(0.0)
        return found._replace(moves=level_moves(self.centring, self.levels, away))


def with_bug(sampler, broken):
    """The sampler with this test for its own."""
    fields = dataclasses.fields(LevelTest)
    values = {field.name: getattr(sampler.acceptance, field.name) for field in fields}
    return dataclasses.replace(sampler, acceptance=broken(**values))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("case", "broken", "has_rare"),
    [
        ("one factor", FewerArrivals, False),
        ("one factor", ShorterMoves, False),
        ("one factor", RareTwice, True),
        ("one factor", RareForgotten, True),
        ("shape", FewerArrivals, False),
        ("shape", RareForgotten, True),
        ("ordered", FewerArrivals, False),
        ("ordered", RareForgotten, True),
    ],
)
def test_planted_bugs_are_seen(case, broken, has_rare):
    sampler = with_bug(sampler_of(case, has_rare=has_rare), broken)
    assert moved_by(case, sampler, 4 * NUM_DRAWS).worst > PLANTED


@pytest.mark.slow
@pytest.mark.parametrize("case", ["shape", "ordered"])
def test_moves_that_are_forgotten_break_bounds(case):
    found = moved_by(case, with_bug(sampler_of(case, has_rare=False), SharedForgotten), 5_000)
    assert int(found.info.broken_bound.max()) >= 0


def large(family=models.logistic):
    """Numbers, two factors and one that multiplies; some levels of a row or two."""
    generator = np.random.default_rng(5)
    size = 400
    first = generator.choice(6, size, p=[0.4, 0.3, 0.2, 0.08, 0.015, 0.005]) - 1
    codes = np.stack([first, generator.integers(-1, 3, size), generator.integers(-1, 2, size)], 1)
    table = coded(
        generator.normal(size=(size, 2)),
        codes.astype(np.int32),
        (5, 3, 2),
        generator.normal(size=(size, 1)),
        (None, None, 0),
    )
    if family is models.negative_binomial:
        return family(table, generator.geometric(0.5, size) - 1)  # of mean and shape one
    return family(table, generator.integers(0, 3 if family is models.ordinal else 2, size))


@pytest.mark.slow
@pytest.mark.parametrize(
    "family",
    [
        models.logistic,
        pytest.param(models.poisson, marks=pytest.mark.slow),
        pytest.param(models.negative_binomial, marks=pytest.mark.slow),
        pytest.param(models.ordinal, marks=pytest.mark.slow),
    ],
)
def test_rows_come_as_often_as_their_bounds_which_hold(family):
    target = large(family)
    middle = jax.tree.map(lambda leaf: np.zeros(leaf.shape, np.float32), target.init)
    reference = reference_at(target, middle, 2)
    test = acceptance.tuna().bind(target, reference)
    generator = np.random.default_rng(0)
    size, count = trees.size(target.init), 50_000
    factor = np.linalg.inv(
        np.linalg.cholesky(whole_hessian(target, reference.position, reference.hessian))
    )
    here, there = (
        trees.unflatten_like(
            jnp.asarray(factor.T @ (0.3 * generator.normal(size=size)), jnp.float32), target.init
        )
        for _ in range(2)
    )
    rates = test.rates(test.remember(target, here), test.remember(target, there))
    own = cell_rows(test.bounds, reference.position, target.data)
    cells = own.levels + np.array(test.levels.starts, np.int32)
    numbers = test.table.weights[np.arange(target.num_examples) // test.table.each]
    bounds = own.weights[:, 0] * rates.each[0] + numbers * rates.each[-1]
    bounds += jnp.sum(own.weights[:, 1:] * rates.each[cells], axis=1)
    is_rare = np.asarray(test.rare.holds(own.levels))
    assert 0 < is_rare.sum() < 50
    # every remainder is below its bound
    found = differences_and_rounding(test.bounds, reference, 2, here, there, target.data)
    ratios = np.asarray((jnp.abs(found.value) - found.rounding) / bounds)[~is_rare]
    assert 1e-3 < ratios.max() < 1.0
    # and rows come in proportion to them
    words = jax.random.bits(jax.random.key(1), (NUM_WORDS, count), jnp.uint32)
    drawn = test.candidates(target, rates, words, jnp.ones(count, bool))
    arrived = np.asarray(drawn.examples)[np.asarray(drawn.arrives)]
    assert not is_rare[arrived].any()
    shares = np.where(is_rare, 0.0, np.asarray(bounds, np.float64)) / float(rates.total)
    counts = np.bincount(arrived, minlength=len(shares))
    # grouped by their bounds, so that every group has many
    common = np.flatnonzero(~is_rare)
    groups = np.array_split(common[np.argsort(shares[common])], 20)
    seen = np.array([counts[group].sum() for group in groups])
    wanted = count * np.array([shares[group].sum() for group in groups])
    assert wanted.min() > 25
    assert np.abs((seen - wanted) / np.sqrt(wanted)).max() < threshold(len(groups))


def test_the_mean_of_a_skewed_posterior_is_nearer_than_its_mode():
    target = one_factor()
    mode = find_mode(target, target.init).position
    _, mean = mean_slope(target, reference_at(target, mode, 2), None)
    truth = exact(one_factor_density, *COUNTED).mean
    of_mode, of_mean = (np.abs(np.asarray(found) - truth) for found in (mode, mean))
    assert (of_mean < 0.4 * of_mode).all()
