"""The chunk runner: the same draws however a run is cut, and memory that does not grow with it."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from doubles import some_of
from every_sampler import SAMPLERS, TARGETS

import amagold
from amagold import acceptance, runner
from amagold.core import trees
from amagold.runner import _layout as layouts, _placement as placement


def start(form, num_chains):
    return jax.tree.map(lambda leaf: jnp.stack([jnp.asarray(leaf)] * num_chains), TARGETS[form][1])


@pytest.mark.parametrize(
    "name",
    some_of(["amagold", "amagold irreversible", "sghmc", "sgld corrected"], "amagold irreversible"),
)
def test_the_cut_does_not_show(name):
    sampler = SAMPLERS[name](TARGETS["vector"][0], 0.1)
    positions = start("vector", 4)
    whole = amagold.run_chains(sampler, jax.random.key(0), positions, 24, num_burn_in=3)
    for chunk_bytes in (1, 3_000, 20_000):
        cut = amagold.run_chains(
            sampler, jax.random.key(0), positions, 24, num_burn_in=3, chunk_bytes=chunk_bytes
        )
        np.testing.assert_array_equal(cut.position, whole.position)
        np.testing.assert_array_equal(cut.info.log_ratio, whole.info.log_ratio)
    assert whole.position.shape == (4, 24, 3)
    assert len(np.unique(whole.position[:, -1, 0])) == 4, "chains must differ"


@pytest.mark.slow
def test_thinning_keeps_every_so_many_of_the_same_draws():
    sampler = SAMPLERS["amagold irreversible"](TARGETS["vector"][0], 0.1)
    positions = start("vector", 2)
    all_draws = amagold.run_chains(sampler, jax.random.key(0), positions, 24)
    for chunk_bytes in (layouts.KEPT_BYTES, 1_000):
        thinned = amagold.run_chains(
            sampler, jax.random.key(0), positions, 4, thin=6, chunk_bytes=chunk_bytes
        )
        np.testing.assert_array_equal(thinned.position, all_draws.position[:, 5::6])
        np.testing.assert_array_equal(
            thinned.info.num_gradient_examples, 6 * all_draws.info.num_gradient_examples[:, ::6]
        )
        mean_rate = all_draws.info.acceptance_rate.reshape(2, 4, 6).mean(axis=-1)
        np.testing.assert_allclose(thinned.info.acceptance_rate, mean_rate, rtol=1e-5)


def test_going_on_is_the_same_as_never_stopping():
    sampler = SAMPLERS["amagold irreversible"](TARGETS["vector"][0], 0.1)
    states = runner.start_chains(sampler, start("vector", 2), jax.random.key(0))
    *_, (ended, _) = runner.run_chunks(sampler, jax.random.key(1), states, 20)
    *_, (halfway, _) = runner.run_chunks(sampler, jax.random.key(1), states, 8)
    *_, (resumed, _) = runner.run_chunks(sampler, jax.random.key(1), halfway, 12, first=8)
    np.testing.assert_array_equal(resumed.position, ended.position)
    np.testing.assert_array_equal(resumed.momentum, ended.momentum)


def test_a_step_is_a_transition_of_the_runner():
    sampler = SAMPLERS["amagold"](TARGETS["vector"][0], 0.1)
    states = runner.start_chains(sampler, start("vector", 1), jax.random.key(0))
    [(ended, _)] = list(runner.run_chunks(sampler, jax.random.key(1), states, 1))
    key = jax.random.fold_in(jax.random.fold_in(jax.random.key(1), 0), 0)
    alone, _ = sampler.step(key, jax.tree.map(lambda leaf: leaf[0], states))
    np.testing.assert_allclose(ended.position[0], alone.position, rtol=1e-5, atol=1e-6)


@pytest.mark.slow
def test_one_and_two_devices_use_the_same_random_numbers():
    sampler = SAMPLERS["amagold"](TARGETS["vector"][0], 0.1)
    assert len(jax.devices()) == 2
    assert placement.chain_mesh(4) is not None
    assert placement.chain_mesh(3) is None
    two = amagold.run_chains(sampler, jax.random.key(0), start("vector", 4), 10)
    three_chains = amagold.run_chains(sampler, jax.random.key(0), start("vector", 3), 10)
    np.testing.assert_allclose(two.position[:3], three_chains.position, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_large_noise_is_drawn_late(monkeypatch):
    sampler = SAMPLERS["amagold noisy"](TARGETS["vector"][0], 0.1)
    states = runner.start_chains(sampler, start("vector", 2), jax.random.key(0))
    assert not layouts.plan_layout(sampler, states, 10, 1).late
    monkeypatch.setattr("amagold.core.randomness.BLOCK_SIZE", 0)
    jax.clear_caches()  # a compiled program does not see the new sizes
    early = amagold.run_chains(sampler, jax.random.key(0), start("vector", 2), 10)
    monkeypatch.setattr(sys.modules["amagold.samplers._amortized"], "LATE_BYTES", 10)
    assert layouts.plan_layout(sampler, states, 10, 1).late
    late = amagold.run_chains(sampler, jax.random.key(0), start("vector", 2), 10)
    np.testing.assert_allclose(late.position, early.position, rtol=1e-4, atol=1e-5)
    jax.clear_caches()


def test_a_block_and_a_chunk_stay_within_their_budgets():
    sampler = SAMPLERS["amagold"](TARGETS["vector"][0], 0.1)
    randomness = jax.eval_shape(lambda key: sampler.draw(key, jnp.zeros(3)), jax.random.key(0))
    drawn = sum(np.prod(leaf.shape) * 4 for leaf in jax.tree.leaves(randomness))
    for num_chains in (1, 64):
        states = runner.start_chains(sampler, start("vector", num_chains), jax.random.key(0))
        for budget in (20_000, 1_000_000):
            layout = layouts.plan_layout(sampler, states, 10**6, 1, chunk_bytes=budget)
            assert drawn * num_chains * layout.num_kept <= budget or layout.num_kept == 1
            assert 12 * num_chains * layout.num_kept * layout.num_blocks <= budget


def test_a_chunk_of_a_slow_model_is_short(monkeypatch):
    sampler = SAMPLERS["amagold"](TARGETS["vector"][0], 0.1)
    states = runner.start_chains(sampler, start("vector", 2), jax.random.key(0))
    # ten transitions of two chains
    monkeypatch.setattr(layouts, "MAX_WORK", 10 * 2 * 3 * (3 * 4 + 12))
    layout = layouts.plan_layout(sampler, states, 1000, 1)
    assert layout.num_blocks * layout.num_kept <= 10


@pytest.mark.slow
def test_progress_is_reported_and_does_not_show_in_the_draws():
    sampler = SAMPLERS["amagold"](TARGETS["vector"][0], 0.1)
    seen = []
    quiet = amagold.run_chains(
        sampler, jax.random.key(0), start("vector", 2), 10, num_burn_in=4, chunk_bytes=3_000
    )
    loud = amagold.run_chains(
        sampler,
        jax.random.key(0),
        start("vector", 2),
        10,
        num_burn_in=4,
        chunk_bytes=3_000,
        report=seen.append,
    )
    assert seen[-1] == 14
    assert seen == sorted(seen)
    np.testing.assert_array_equal(quiet.position, loud.position)


@trees.record(static=("keep", "chunk_size"))
class ManyExamples(acceptance.FullTest):
    """A test that says to have looked at ten million examples."""

    def num_examples(self, target):
        return 10**7


def test_counts_do_not_overflow_over_thinned_transitions(monkeypatch):
    """A thousand tests over ten million examples are more than 32 bits hold, in one piece and in
    several.
    """
    sampler = amagold.amagold(
        TARGETS["vector"][0], step_size=0.1, num_steps=1, acceptance=ManyExamples()
    )
    for most in (1000, 500):
        monkeypatch.setattr(layouts, "MAX_WORK", most * 3 * (10**7 + 12))
        draws = amagold.run_chains(sampler, jax.random.key(0), start("vector", 1), 1, thin=1000)
        np.testing.assert_allclose(draws.info.num_energy_examples, 1e10, rtol=1e-6)
        np.testing.assert_array_equal(draws.info.num_gradient_examples, 1000 * 12)
