"""Rows brought ahead from other devices: the draws are those of a run that has every row at hand,
however often a chain has to wait for more of them.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_target import exact_draws, features, log_likelihood, log_prior, target as plain_target
from false_alarms import PLANTED, worst
from over_devices import over_devices

import amagold
from amagold import acceptance, gradients
from amagold.acceptance._tuna import TunaTest
from amagold.core import trees
from amagold.data import Spread
from amagold.data._on_host import on_host
from amagold.runner import _ahead
from amagold.runner._chains import start_chains
from amagold.runner._layout import AHEAD_BYTES, MOST_AHEAD, most_ahead
from amagold.target._linear_bounds import LinearBounds

CENTER = np.array([0.1, 0.5], np.float32)
# exp(z) - y z is bounded as the tests of the acceptance have it, and here more loosely, so that
# tests look at many examples
BOUNDS = LinearBounds(
    lambda position, example: jnp.dot(example[0], position),
    lambda z, example: example[1] * z - jnp.exp(z),
    (2.0, 1.0, 1.0),
    lambda z, example: jnp.maximum(jnp.exp(z), example[1]),
    growth=1.0,
)


def posterior():
    return amagold.Posterior(log_likelihood, log_prior, plain_target().data, bounds=BOUNDS)


def sampler_of(target, test, **settings):
    return amagold.amagold(
        target,
        step_size=0.1,
        friction=0.3,
        num_steps=2,
        gradient=gradients.control_variate(2, 2, center=CENTER),
        acceptance=test,
        **settings,
    )


TESTS = {
    "tuna": acceptance.tuna(2, CENTER, block_size=2),
    "tuna, one at a time": acceptance.tuna(1, CENTER, block_size=1),
    "no test": acceptance.never_reject(),
}


@pytest.fixture
def waits(monkeypatch):
    """How many transitions were made by all devices together."""
    counted = []
    original = _ahead._kept_at

    def counting(number, *others):
        if isinstance(number, int):  # the one that chains have waited for
            jax.debug.callback(lambda: counted.append(1))
        return original(number, *others)

    monkeypatch.setattr(_ahead, "_kept_at", counting)
    return counted


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "num_chains", "thin", "counts"),
    [
        ("no test", 4, 2, None),
        ("tuna", 2, 1, None),
        ("tuna", 3, 1, [5, 3]),
        ("tuna", 1, 3, [3, 5]),
        ("tuna, one at a time", 4, 1, [5, 3]),
        ("tuna, one at a time", 4, 3, None),
    ],
)
def test_draws_are_those_of_rows_at_hand(name, num_chains, thin, counts, waits):
    given = posterior()
    found = [
        amagold.run_chains(
            sampler_of(target, TESTS[name]),
            jax.random.key(3),
            exact_draws(200_000)[:num_chains],
            40,
            num_burn_in=5,
            thin=thin,
            chunk_bytes=2_000,
        )
        for target in (given, over_devices(given, counts))
    ]
    jax.effects_barrier()
    assert bool(waits) == (name != "no test")
    for ours, theirs in zip(*map(jax.tree.leaves, found), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-4)
    assert len(np.unique(found[0].position)) > 40


@pytest.mark.slow
@pytest.mark.parametrize("num_chains", [2, 3, 4])
def test_so_are_those_of_rows_that_the_host_brings(num_chains, waits):
    """To the bit: the arithmetic is the same."""
    given = posterior()
    arrays = jax.tree.map(np.asarray, given.examples.arrays)
    there = dataclasses.replace(given, data=on_host(arrays, arrays, "sealed", None))
    found = [
        amagold.run_chains(
            sampler_of(target, TESTS["tuna, one at a time"]),
            jax.random.key(3),
            exact_draws(200_000)[:num_chains],
            40,
            chunk_bytes=2_000,
        ).position
        for target in (given, there)
    ]
    jax.effects_barrier()
    assert waits
    np.testing.assert_array_equal(*found)


@pytest.mark.slow
def test_other_tests_walk_over_all_parts():
    """The full test, and one that looks at examples in a random order: all devices go together."""
    given = posterior()
    for test in (acceptance.full(), acceptance.barker(order=2, center=CENTER, batch_size=3)):
        found = [
            amagold.run_chains(
                sampler_of(target, test), jax.random.key(3), exact_draws(200_000)[:4], 20
            ).position
            for target in (given, over_devices(given))
        ]
        np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-4)
        assert len(np.unique(found[0])) > 20


@pytest.mark.slow
def test_a_row_that_was_not_asked_for_moves_no_chain(monkeypatch):
    """A planted bug of the exchange: rows come back without what they are known by."""
    original = Spread._own_mark
    monkeypatch.setattr(Spread, "_own_mark", lambda self, numbers: original(self, numbers) // 2)
    sampler = sampler_of(over_devices(posterior()), TESTS["tuna"])
    start = exact_draws(200_000)[:2]
    found = amagold.run_chains(sampler, jax.random.key(3), start, 10)
    assert found.info.is_divergent.all()
    np.testing.assert_array_equal(found.position, np.broadcast_to(start[:, None], (2, 10, 2)))


def test_rows_that_are_brought_have_a_bound():
    """Rows of large batches are asked for in smaller blocks."""
    sampler = sampler_of(over_devices(posterior()), TESTS["tuna"])
    states = start_chains(sampler, exact_draws(200_000)[:2], jax.random.key(0))
    row = 3 * 4  # bytes: two predictors and a count
    named = 2 * 2 + sampler.acceptance.num_foreseen  # two steps of two examples, and the test's
    assert most_ahead(sampler, states, 2) == MOST_AHEAD
    most = AHEAD_BYTES // (10**6 * named * row)
    assert most_ahead(sampler, states, 10**6) == max(1, most) < MOST_AHEAD


@trees.record()
class DropsWhatWaits(TunaTest):
    """A planted bug: a transition that needs more rows than were brought is dropped, and the chain
    stays where it is.
    """

    def decide_from(self, foreseen, rows, target, draws, memory, proposed, work):
        decision, is_decided = super().decide_from(
            foreseen, rows, target, draws, memory, proposed, work
        )
        return decision._replace(is_accepted=decision.is_accepted & is_decided), jnp.bool_(True)


def moved(kind):
    target = over_devices(posterior())
    sampler = sampler_of(target, acceptance.tuna(2, CENTER, block_size=1))
    fields = {
        each.name: getattr(sampler.acceptance, each.name)
        for each in dataclasses.fields(sampler.acceptance)
    }
    sampler = dataclasses.replace(sampler, acceptance=kind(**fields))
    draws = exact_draws(200_000)[:60_000]
    after = amagold.run_chains(sampler, jax.random.key(5), draws, 1, thin=12).position[:, 0]
    return worst(np.asarray(features(jnp.asarray(after)) - features(jnp.asarray(draws))))


@pytest.mark.slow
def test_exact_draws_stay_exact():
    assert moved(TunaTest) <= 1.0


@pytest.mark.slow
def test_a_dropped_transition_is_seen():
    assert moved(DropsWhatWaits) > PLANTED
