"""The energy: the same by any chunk, bounded in memory, and precise where float32 alone is not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from regressions import FAMILIES
from scipy import special

import amagold
from amagold import acceptance, models
from amagold.energy import _chunks as chunks
from amagold.energy._float64 import can_widen, needs_double, rounding_of, wide_log_likelihoods
from amagold.energy._remembered_energy import log_density_difference, remember
from amagold.energy._wide_sums import FEW, precise_sum
from amagold.gradients._full_gradient import energy_gradient


def log_likelihood(position, example):
    x, y = example
    return -jnp.log1p(jnp.exp(-y * (position[0] + position[1] * x)))


def log_prior(position):
    return -0.5 * jnp.sum(position**2)


def problem(num_examples, seed=0):
    generator = np.random.default_rng(seed)
    x = generator.normal(size=num_examples).astype(np.float32)
    y = np.where(
        generator.uniform(size=num_examples) < 1 / (1 + np.exp(-(0.3 + 0.8 * x))), 1, -1
    ).astype(np.float32)
    return amagold.Posterior(log_likelihood, log_prior, (x, y))


def difference_in_double(target, a, b):
    """U(a) - U(b) from the same float32 data and positions, in float64."""
    x, y = (np.asarray(leaf, np.float64) for leaf in jax.tree.leaves(target.data))
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)

    def energy(position):
        return 0.5 * np.sum(position**2) + np.sum(
            np.log1p(np.exp(-y * (position[0] + position[1] * x)))
        )

    return energy(a) - energy(b)


def close_pair(num_examples):
    """Two positions a posterior standard deviation apart, so that the difference is of
    order one.
    """
    a = np.array([0.3, 0.8], np.float32)
    return a, (a + np.float32(2.0 / np.sqrt(num_examples)) * np.array([1.0, -0.7])).astype(
        np.float32
    )


def naive_difference(target, a, b):
    """The twin: both energies summed in float32, then subtracted."""
    energy = jax.jit(
        lambda position: -log_prior(position) - target.log_likelihoods(position, target.data).sum()
    )
    return float(energy(a) - energy(b))


@pytest.mark.slow  # every family keeps the promise in `make test`, at fewer
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


@pytest.mark.parametrize(
    "chunk_size", [3, 100, *(pytest.param(n, marks=pytest.mark.slow) for n in (1, 10, 99, 1000))]
)
def test_any_chunk_gives_the_same_values(chunk_size):
    target, position = problem(100), jnp.array([0.1, -0.4])
    wanted = target.log_likelihoods(position, target.data)
    np.testing.assert_allclose(
        chunks.log_likelihoods(target, position, chunk_size), wanted, rtol=1e-6
    )
    a, b = close_pair(100)
    for keep in ("examples", "total"):
        memories = [remember(target, jnp.asarray(at), keep, chunk_size) for at in (a, b)]
        found = float(log_density_difference(target, memories[1], memories[0]))
        np.testing.assert_allclose(found, difference_in_double(target, a, b), atol=1e-5)


def test_the_full_gradient_in_chunks_is_the_gradient(monkeypatch):
    target, position = problem(1000), jnp.array([0.1, -0.4])
    wanted = jax.grad(lambda at: -log_prior(at) - target.log_likelihoods(at, target.data).sum())(
        position
    )
    monkeypatch.setattr(chunks, "TEMPORARY_BYTES", 600)
    assert chunks.chunk_size_for(target, position) < 100
    np.testing.assert_allclose(energy_gradient(target, position), wanted, rtol=1e-4)


def test_temporaries_do_not_grow_with_the_data():
    """What the compiled test needs beside its arguments and results is a chunk, however many
    examples there are.
    """

    def wide_likelihood(position, example):
        hidden = jnp.tanh(jnp.outer(jnp.arange(64.0), example[0] * position))
        return -jnp.sum(hidden**2) * example[1]

    def temporary_bytes(num_examples):
        x = np.linspace(-1, 1, num_examples, dtype=np.float32)
        target = amagold.Posterior(wide_likelihood, log_prior, (x, np.ones_like(x)))
        program = jax.jit(lambda target, at: remember(target, at, "total"))
        return (
            program.lower(target, jnp.array([0.1, 0.2]))
            .compile()
            .memory_analysis()
            .temp_size_in_bytes
        )

    small, large = temporary_bytes(200_000), temporary_bytes(2_000_000)
    assert large < 1.1 * small
    assert large < 4 * chunks.TEMPORARY_BYTES


def test_a_large_cache_gives_way_to_a_total(monkeypatch):
    target = problem(1000)
    assert hasattr(remember(target, jnp.zeros(2)), "log_likelihoods")
    monkeypatch.setattr("amagold.energy._remembered_energy.EXAMPLE_MEMORY_BYTES", 1000)
    assert not hasattr(remember(target, jnp.zeros(2)), "log_likelihoods")


@pytest.mark.slow
def test_both_memories_decide_alike():
    target, start = problem(500), jnp.array([0.3, 0.8])
    infos = []
    for keep in ("examples", "total"):
        sampler = amagold.amagold(
            target, step_size=0.02, batch_size=50, acceptance=acceptance.full(keep)
        )
        infos.append(sampler.step(jax.random.key(1), sampler.init(start))[1])
    np.testing.assert_allclose(infos[0].log_ratio, infos[1].log_ratio, atol=1e-4)


def test_density_differences():
    target = amagold.Density(lambda position: -jnp.sum(position**2))
    assert amagold.energy_difference(target, np.array([2.0]), np.array([1.0])) == pytest.approx(3.0)


def test_few_differences_are_summed_as_they_are():
    generator = np.random.default_rng(0)
    terms = (0.3 * generator.normal(size=(200, FEW))).astype(np.float32)
    errors = np.asarray(jax.vmap(precise_sum)(terms), np.float64) - terms.sum(
        axis=1, dtype=np.float64
    )
    assert np.abs(errors).max() < 1e-3, "the precision that is promised for any number of them"
    assert np.sqrt(np.mean(errors**2)) < 1e-4


def family(name, num_examples):
    """A regression on an intercept and one predictor, and its log likelihoods in float64, by scipy;
    residuals of up to 40.
    """
    generator = np.random.default_rng(3)
    x = generator.normal(size=num_examples).astype(np.float32)
    far = (
        generator.uniform(5.0, 40.0, num_examples) * generator.choice([-1.0, 1.0], num_examples)
    ).astype(np.float32)
    counts = generator.poisson(40.0, num_examples)
    labels = generator.integers(0, 3, num_examples)
    X = x[:, None]
    hard = {
        "linear": lambda: (
            models.linear(X, far, 1.0, noise_scale=1.0, standardize=False),
            lambda z: -0.5 * (far - z) ** 2,
        ),
        "robust": lambda: (
            models.robust(X, far, 1.0, noise_scale=1.0, standardize=False),
            lambda z: -2.5 * np.log1p((far - z) ** 2 / 4.0),
        ),
        "poisson": lambda: (models.poisson(X, counts, 1.0), lambda z: counts * z - np.exp(z)),
        "softmax": lambda: (
            models.softmax(X, labels, 1.0),
            lambda z: np.take_along_axis(special.log_softmax(z, axis=-1), labels[:, None], axis=-1)[
                :, 0
            ],
        ),
    }
    if name in hard:
        return hard[name](), x.astype(np.float64)
    regression = FAMILIES[name]
    y = generator.choice(regression.y, num_examples)
    return (
        regression.model(X, y, 1.0),
        lambda z: regression.log_likelihoods(y, z),
    ), x.astype(np.float64)


def check_family(name, num_examples):
    (target, log_likelihoods), x = family(name, num_examples)
    # a standard deviation or so to either side of the mode
    mode = np.zeros(target.init.shape)
    if name in FAMILIES:
        mode[0] = (
            np.log(40.0) if name == "poisson" else FAMILIES[name].link(FAMILIES[name].y.mean())
        )
    away = np.cos(np.arange(mode.size)).reshape(mode.shape) / np.sqrt(num_examples)
    a, b = (mode + away).astype(np.float32), (mode - 2.5 * away).astype(np.float32)

    def energy(position):
        position = position.astype(np.float64)
        return 0.5 * np.sum(position**2) - log_likelihoods(
            position[0] + np.multiply.outer(x, position[1])
        )

    truth = float(
        np.sum(energy(a) - energy(b))
        - (num_examples - 1) * 0.5 * (np.sum(a.astype(float) ** 2) - np.sum(b.astype(float) ** 2))
    )
    return target, (a, b), truth


@pytest.mark.parametrize(
    ("name", "num_examples"),
    [
        pytest.param("linear", 10**6, marks=pytest.mark.slow),
        *(
            pytest.param(name, 10**7, marks=pytest.mark.slow)
            for name in ("linear", "robust", *FAMILIES)
        ),
    ],
)
def test_every_family_keeps_the_promise(name, num_examples):
    target, (a, b), truth = check_family(name, num_examples)
    assert abs(truth) > 1e-2
    assert abs(amagold.energy_difference(target, a, b) - truth) < 1e-3
    test = acceptance.full().bind(target)
    memories = [test.remember(target, jnp.asarray(at)) for at in (a, b)]
    assert abs(float(log_density_difference(target, memories[1], memories[0])) - truth) < 1e-3
    if name == "linear":
        assert test.keep == "double"
        rounded = [remember(target, jnp.asarray(at), "examples") for at in (a, b)]
        error = abs(float(log_density_difference(target, rounded[1], rounded[0])) - truth)
        assert 1e-3 < error < 5.0 * rounding_of(target, a), (
            "the measure says how much float32 values round"
        )


@pytest.mark.parametrize("name", ["auto", "total", "delayed"])
def test_every_sum_over_all_data_is_wide_where_that_is_measured(name):
    """Large residuals of so many examples that float32 values would round the log ratio."""
    (target, _), _ = family("linear", 2**20)
    test = acceptance.delayed(order=1) if name == "delayed" else acceptance.full(name)
    bound = test.bind(target)
    assert bound.is_wide if name == "delayed" else bound.keep == "double"
    small = family("linear", 100)[0][0]
    assert not getattr(test.bind(small), "is_wide", False)
    assert getattr(test.bind(small), "keep", name) == name


def test_small_problems_stay_as_they_were():
    target = problem(1000)
    assert acceptance.full().bind(target).keep == "auto"
    assert not needs_double(target, jnp.zeros(2))


def test_functions_that_fix_their_types_are_evaluated_as_they_are():
    def fixed(position, example):
        total, _ = jax.lax.scan(
            lambda sum, x: (sum + x * position[0], None), jnp.float32(0.0), jnp.ones(3) * example
        )
        return -(total**2)

    target = amagold.Posterior(fixed, log_prior, np.ones(5, np.float32))
    assert not can_widen(target, jnp.zeros(2))
    assert amagold.energy_difference(
        target, np.array([1.0, 0.0]), np.array([0.0, 0.0])
    ) == pytest.approx(45.5)


def test_products_stay_wide_where_chains_are_batched_around_them():
    """JAX grants a product the type it asks for only while float64 is switched on, and batches a
    program after that.
    """
    x = np.array([[1.0, 1e-5], [2.0, -1e-5]], np.float32)
    target = amagold.Posterior(
        lambda at, row: jnp.dot(row[0], at) * row[1],
        lambda at: -0.5 * jnp.sum(at**2),
        (x, np.ones(2, np.float32)),
    )

    @jax.jit
    def of_one(target, position):
        found = wide_log_likelihoods(target, position, target.data)
        with jax.enable_x64(True):
            # what float32 has no room for beside the first products
            return (found - jnp.array([1.0, 2.0])).astype(jnp.float32)

    chains = jnp.ones((3, 2))
    found = jax.vmap(of_one, in_axes=(None, 0))(target, chains)
    np.testing.assert_allclose(found, np.broadcast_to([1e-5, -1e-5], (3, 2)), rtol=1e-5)
