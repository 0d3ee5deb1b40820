"""The exact test on a few examples: exact draws stay exact however loose the bounds, and planted
bugs are seen.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from broken_bounds import fewer_arrivals, smaller_bounds
from doubles import some_of
from exact_target import (
    exact_draws,
    features,
    log_likelihood,
    log_prior,
    move,
    target as plain_target,
)
from false_alarms import PLANTED, worst

import amagold
from amagold import acceptance, gradients
from amagold.acceptance._alias_table import alias_table
from amagold.acceptance._arrival_table import ArrivalTable, arrival_table
from amagold.acceptance._remainders import remainder_differences
from amagold.core import trees
from amagold.mode._row_bounds import Norm, TaylorBound, bound_sums, rows_per_slot
from amagold.target._linear_bounds import LinearBounds

CENTER = np.array([0.1, 0.5], np.float32)
NUM_CHAINS = 30_000


def predictor(position, example):
    return jnp.dot(example[0], position)


def outcome(z, example):
    return example[1] * z - jnp.exp(z)


# of exp(z) - y z: the slope is below exp(z) + y, the others are exp(z) = exp(z_ref) exp(z - z_ref)
BOUNDS = LinearBounds(
    predictor,
    outcome,
    (2.0, 1.0, 1.0),
    lambda z, example: jnp.maximum(jnp.exp(z), example[1]),
    growth=1.0,
)


def target():
    data = plain_target().data
    return amagold.Posterior(log_likelihood, log_prior, data, bounds=BOUNDS)


def sampler_with(test, resample_momentum=True):
    return amagold.amagold(
        target(),
        step_size=0.1,
        friction=0.3,
        num_steps=3,
        gradient=gradients.control_variate(2, 2, center=CENTER),
        acceptance=test,
        resample_momentum=resample_momentum,
    )


def moved(sampler, seed=1, num_chains=NUM_CHAINS):
    draws = exact_draws(200_000)[:num_chains]
    _, states, info = move(sampler, draws, 5, seed)
    return worst(np.asarray(features(states.position) - features(jnp.asarray(draws)))), info


@pytest.mark.parametrize(
    ("order", "resample_momentum"),
    [
        pytest.param(*case, marks=pytest.mark.slow)
        for case in ((1, True), (1, False), (2, True), (2, False))
    ],
)
def test_exact_draws_stay_exact(order, resample_momentum):
    found, info = moved(
        sampler_with(acceptance.tuna(order, block_size=16, most=400.0), resample_momentum)
    )
    counts = np.asarray(info.num_energy_examples)
    assert 0.2 < float(info.acceptance_rate.mean()) < 0.999
    assert int(info.broken_bound.max()) == -1
    assert np.mean(counts > 16) > 0.01, "some tests take more than one block"
    assert np.mean(counts != 8) > 0.5, "most tests do not look at all data"
    assert found < 1.0


@pytest.mark.slow
def test_the_scan_takes_over_exactly():
    found, info = moved(sampler_with(acceptance.tuna(2, block_size=8, most=4.0)))
    share = float(jnp.mean(info.num_energy_examples == 8))
    assert 0.05 < share < 0.95, "both ways are taken"
    assert found < 1.0


def planted(change):
    """The exact sampler with one thing changed in its test."""
    sampler = sampler_with(acceptance.tuna(1, block_size=16, most=400.0))
    return dataclasses.replace(sampler, acceptance=change(sampler.acceptance))


@pytest.mark.slow
@pytest.mark.parametrize(
    "change",
    [
        lambda test: fewer_arrivals(test, 2.0),
        lambda test: smaller_bounds(test, 8.0),  # and clipped
    ],
    ids=["rate halved", "bounds too small"],
)
def test_planted_bugs_are_seen(change):
    assert moved(planted(change), num_chains=150_000)[0] > PLANTED


def test_a_broken_bound_stops_the_run_and_names_the_example():
    sampler = planted(lambda test: smaller_bounds(test, 8.0))
    with pytest.raises(ValueError, match=r"example [0-7] broke its bound in chain"):
        amagold.run_chains(sampler, jax.random.key(0), exact_draws(200_000)[:64], 50)


@pytest.fixture
def few_slots(monkeypatch):
    """Several neighbours to a slot, as with more than a million examples."""
    jax.clear_caches()
    monkeypatch.setattr("amagold.mode._row_bounds.MOST_SLOTS", 2)
    yield
    jax.clear_caches()


@pytest.mark.slow
@pytest.mark.parametrize("resample_momentum", [True, False])
def test_exact_draws_stay_exact_with_several_rows_to_a_slot(few_slots, resample_momentum):
    sampler = sampler_with(acceptance.tuna(2, block_size=16, most=400.0), resample_momentum)
    assert sampler.acceptance.table.each == 4
    assert float(sampler.acceptance.table.excess) > 1.2, "some candidates do not arrive"
    found, info = moved(sampler)
    assert 0.2 < float(info.acceptance_rate.mean()) < 0.999
    assert int(info.broken_bound.max()) == -1
    assert found < 1.0


@trees.record()
class EveryCandidate(ArrivalTable):
    """All candidates arrive."""

    def arriving(self, words, weights, rows):
        return jnp.ones(weights.shape, bool), self.own_weights(weights, rows)


@trees.record()
class FirstOfSlot(ArrivalTable):
    """The first row of each slot stands for all of it."""

    def candidates(self, words):
        numbers, weights = ArrivalTable.candidates(self, words)
        return numbers // self.each * self.each, weights


def as_kind(kind, table):
    return kind(**{field.name: getattr(table, field.name) for field in dataclasses.fields(table)})


@pytest.mark.parametrize(
    "change",
    [
        lambda table: as_kind(EveryCandidate, table),
        lambda table: as_kind(FirstOfSlot, table),
        lambda table: dataclasses.replace(table, excess=jnp.float32(1.0)),
    ],
    ids=["every candidate arrives", "the first of a slot", "as many candidates as arrivals"],
)
@pytest.mark.slow
def test_bugs_planted_in_slots_are_seen(few_slots, change):
    sampler = sampler_with(acceptance.tuna(1, block_size=16, most=400.0))
    test = sampler.acceptance
    broken = dataclasses.replace(test, table=change(test.table))
    found, _ = moved(dataclasses.replace(sampler, acceptance=broken), num_chains=150_000)
    assert found > PLANTED


@pytest.mark.slow
@pytest.mark.parametrize("most_slots", some_of([2, 64, 1000], 64))
def test_slots_hold_the_largest_bound_of_their_rows(most_slots, monkeypatch):
    jax.clear_caches()
    monkeypatch.setattr("amagold.mode._row_bounds.MOST_SLOTS", most_slots)
    # so that the last chunk is moved back, and begins within a slot
    monkeypatch.setattr("amagold.energy._chunks.TEMPORARY_BYTES", 64 * 100)
    generator = np.random.default_rng(3)
    X, y = generator.normal(size=(701, 3)), generator.random(701) < 0.5
    posterior = amagold.models.logistic(X, y)
    position = np.zeros(4, np.float32)
    norm = Norm.of_matrix(np.diag([1.0, 2.0, 3.0, 4.0]))
    bound = TaylorBound(posterior.bounds, 2, position, norm)
    sums = bound_sums(posterior, position, bound)
    weights, norms = jax.vmap(bound)(posterior.data)
    each = rows_per_slot(701)
    assert each == {2: 512, 64: 16, 1000: 1}[most_slots]
    expected = [np.max(weights[start : start + each]) for start in range(0, 701, each)]
    np.testing.assert_allclose(sums.of_slots[: len(expected)], expected, rtol=1e-6)
    assert not np.any(sums.of_slots[len(expected) :])
    np.testing.assert_allclose(sums.total.high, np.asarray(weights, np.float64).sum(), rtol=1e-6)
    assert float(sums.largest_norm) == float(norms.max())
    numbers, _ = arrival_table(sums, bound, 701).some(jax.random.key(0), 100_000)
    assert len(np.unique(numbers)) == 701, "every row can be drawn"
    jax.clear_caches()


def test_the_alias_table_has_the_weights():
    weights = np.random.default_rng(0).standard_cauchy(1000) ** 2 + 1e-3
    table = alias_table(weights)
    probability = np.asarray(table.probability, np.float64)
    mass = probability.copy()
    np.add.at(mass, np.asarray(table.alias), 1.0 - probability)
    np.testing.assert_allclose(mass / 1000, weights / weights.sum(), rtol=1e-4, atol=1e-9)


@pytest.mark.few(1)
@pytest.mark.parametrize("size", [1e-3, 0.05, 3.0])
@pytest.mark.parametrize("order", [0, 1, 2])
def test_remainders_are_precise_however_small(order, size):
    generator = np.random.default_rng(1)
    X, y = generator.normal(size=(50, 3)).astype(np.float32), generator.random(50) < 0.5
    posterior = amagold.models.logistic(X, y, prior_scale=1.0, intercept=False)
    center, here, there = (
        scale * generator.normal(size=3).astype(np.float32) for scale in (1.0, size, size)
    )
    bound = acceptance.tuna(order, center=center, block_size=8).bind(posterior)
    found = remainder_differences(
        bound.bounds, bound.reference, order, center + here, center + there, posterior.data
    )

    def remainder(away):
        sign, z = np.where(y, 1.0, -1.0), X.astype(np.float64) @ center.astype(np.float64)
        step = X.astype(np.float64) @ away.astype(np.float64)
        p = 1.0 / (1.0 + np.exp(-sign * z))
        value = np.logaddexp(0.0, -sign * (z + step)) - np.logaddexp(0.0, -sign * z)
        return (
            value
            - (order > 0) * (-(1.0 - p) * sign * step)
            - (order > 1) * 0.5 * p * (1.0 - p) * step**2
        )

    # in float32 the positions themselves are rounded, so the steps are taken as they are there
    wanted = remainder((center + there) - center) - remainder((center + here) - center)
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-3 * np.abs(wanted).max())


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="order must be 0, 1 or 2"):
        acceptance.tuna(3)
    with pytest.raises(ValueError, match="bounds must be known"):
        amagold.amagold(plain_target(), step_size=0.1, acceptance=acceptance.tuna(center=CENTER))
    with pytest.raises(ValueError, match="needs a target with data"):
        amagold.amagold(amagold.models.double_well(), step_size=0.1, acceptance=acceptance.tuna())


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_a_run_records_how_many_examples_each_test_saw(tmp_path):
    sampler = sampler_with(acceptance.tuna(2, block_size=8, most=400.0))
    run = amagold.sample(
        sampler, 50, 0, 2, init=CENTER, store=tmp_path / "run.zarr", progress=False
    )
    counts = run.sample_stats["num_energy_examples"].to_numpy()
    assert counts.shape == (2, 50)
    assert len(np.unique(counts)) > 3
    assert (
        amagold.load(tmp_path / "run.zarr")
        .sample_stats["num_energy_examples"]
        .equals(run.sample_stats["num_energy_examples"])
    )
