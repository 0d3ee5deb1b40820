"""The energy: the same by any chunk, bounded in memory, and precise where float32 alone is not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import amagold
from amagold import acceptance
from amagold.energy import chunks
from amagold.energy.memory import log_density_difference, remember
from amagold.energy.precise import FEW, precise_sum
from amagold.gradients.full import energy_gradient


def log_likelihood(position, example):
    x, y = example
    return -jnp.log1p(jnp.exp(-y * (position[0] + position[1] * x)))


def log_prior(position):
    return -0.5 * jnp.sum(position**2)


def problem(num_examples, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=num_examples).astype(np.float32)
    y = np.where(generator.uniform(size=num_examples) < 1 / (1 + np.exp(-(0.3 + 0.8 * x))), 1, -1).astype(np.float32)
    return amagold.Posterior(log_likelihood, log_prior, (x, y))


def difference_in_double(target, a, b):
    """U(a) - U(b) from the same float32 data and positions, in float64."""
    x, y = (np.asarray(leaf, np.float64) for leaf in target.data)
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)

    def energy(position):
        return 0.5 * np.sum(position**2) + np.sum(np.log1p(np.exp(-y * (position[0] + position[1] * x))))

    return energy(a) - energy(b)


def close_pair(num_examples):
    """Two positions a posterior standard deviation apart, so that the difference is of order one."""
    a = np.array([0.3, 0.8], np.float32)
    return a, (a + np.float32(2.0 / np.sqrt(num_examples)) * np.array([1.0, -0.7])).astype(np.float32)


def naive_difference(target, a, b):
    """The twin: both energies summed in float32, then subtracted."""
    energy = jax.jit(lambda position: -log_prior(position) - target.log_likelihoods(position, target.data).sum())
    return float(energy(a) - energy(b))


def test_ten_million_examples_in_float32():
    target = problem(10**7)
    a, b = close_pair(10**7)
    truth = difference_in_double(target, a, b)
    assert 0.1 < abs(truth) < 10.0
    assert abs(amagold.energy_difference(target, a, b) - truth) < 1e-3
    assert abs(naive_difference(target, a, b) - truth) > 1e-2
    for keep in ("examples", "total"):
        memories = [remember(target, jnp.asarray(at), keep) for at in (a, b)]
        assert abs(float(log_density_difference(target, memories[1], memories[0])) - truth) < 1e-3


@pytest.mark.parametrize("chunk_size", [1, 3, 10, 99, 100, 1000])
def test_any_chunk_gives_the_same_values(chunk_size):
    target, position = problem(100), jnp.array([0.1, -0.4])
    wanted = target.log_likelihoods(position, target.data)
    np.testing.assert_allclose(chunks.log_likelihoods(target, position, chunk_size), wanted, rtol=1e-6)
    a, b = close_pair(100)
    for keep in ("examples", "total"):
        memories = [remember(target, jnp.asarray(at), keep, chunk_size) for at in (a, b)]
        found = float(log_density_difference(target, memories[1], memories[0]))
        np.testing.assert_allclose(found, difference_in_double(target, a, b), atol=1e-5)


def test_the_full_gradient_in_chunks_is_the_gradient(monkeypatch):
    target, position = problem(1000), jnp.array([0.1, -0.4])
    wanted = jax.grad(lambda at: -log_prior(at) - target.log_likelihoods(at, target.data).sum())(position)
    monkeypatch.setattr(chunks, "CHUNK_BYTES", 600)
    assert chunks.chunk_size_for(target, position) < 100
    np.testing.assert_allclose(energy_gradient(target, position), wanted, rtol=1e-4)


def test_temporaries_do_not_grow_with_the_data():
    """What the compiled test needs beside its arguments and results is a chunk, however many examples there are."""

    def wide_likelihood(position, example):
        hidden = jnp.tanh(jnp.outer(jnp.arange(64.0), example[0] * position))
        return -jnp.sum(hidden**2) * example[1]

    def temporary_bytes(num_examples):
        x = np.linspace(-1, 1, num_examples, dtype=np.float32)
        target = amagold.Posterior(wide_likelihood, log_prior, (x, np.ones_like(x)))
        program = jax.jit(lambda target, at: remember(target, at, "total"))
        return program.lower(target, jnp.array([0.1, 0.2])).compile().memory_analysis().temp_size_in_bytes

    small, large = temporary_bytes(200_000), temporary_bytes(2_000_000)
    assert large < 1.1 * small
    assert large < 4 * chunks.CHUNK_BYTES


def test_a_large_cache_gives_way_to_a_total(monkeypatch):
    target = problem(1000)
    assert hasattr(remember(target, jnp.zeros(2)), "log_likelihoods")
    monkeypatch.setattr("amagold.energy.memory.EXAMPLE_MEMORY_BYTES", 1000)
    assert not hasattr(remember(target, jnp.zeros(2)), "log_likelihoods")


def test_both_memories_decide_alike():
    target, start = problem(500), jnp.array([0.3, 0.8])
    infos = []
    for keep in ("examples", "total"):
        sampler = amagold.amagold(target, step_size=0.02, batch_size=50, acceptance=acceptance.full(keep))
        infos.append(sampler.step(jax.random.key(1), sampler.init(start))[1])
    np.testing.assert_allclose(infos[0].log_ratio, infos[1].log_ratio, atol=1e-4)


def test_density_differences():
    target = amagold.Density(lambda position: -jnp.sum(position**2))
    assert amagold.energy_difference(target, np.array([2.0]), np.array([1.0])) == pytest.approx(3.0)


def test_few_differences_are_summed_as_they_are():
    generator = np.random.default_rng(0)
    terms = (0.3 * generator.normal(size=(200, FEW))).astype(np.float32)
    errors = np.asarray(jax.vmap(precise_sum)(terms), np.float64) - terms.sum(axis=1, dtype=np.float64)
    assert np.abs(errors).max() < 1e-3, "the precision that is promised for any number of them"
    assert np.sqrt(np.mean(errors**2)) < 1e-4
