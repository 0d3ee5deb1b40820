"""Stein discrepancy, effective sample size, R-hat and cost: known values, and draws that must not
look good.
"""

import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
import xarray
from false_alarms import threshold

import amagold
from amagold.diagnose import effective_cost, kernel_stein_discrepancy, maximum_r_hat, minimum_ess
from amagold.diagnose._stein import _stein_sum

STANDARD_DEVIATIONS = np.array([0.1, 1.0, 10.0])


def gaussian_log_density(position):
    return -0.5 * jnp.sum((position / STANDARD_DEVIATIONS) ** 2)


GAUSSIAN = amagold.Density(gaussian_log_density, init=np.zeros(3))


def gaussian_draws(num_draws, seed=0, variance=1.0):
    return (
        math.sqrt(variance)
        * np.random.default_rng(seed).normal(size=(num_draws, 3))
        * STANDARD_DEVIATIONS
    )


def test_stein_kernel_is_the_operator_applied_twice():
    """k0(x, y) = (s(x) + grad_x) . (s(y) + grad_y) k(x, y), by automatic differentiation."""

    def kernel(x, y):
        return (1.0 + jnp.sum((x - y) ** 2)) ** -0.5

    def stein(x, y, s, t):
        mixed = jnp.trace(jax.jacfwd(jax.grad(kernel, 1), 0)(x, y))
        return (
            s @ t * kernel(x, y)
            + s @ jax.grad(kernel, 1)(x, y)
            + t @ jax.grad(kernel, 0)(x, y)
            + mixed
        )

    generator = np.random.default_rng(1)
    positions, scores = generator.normal(size=(2, 6, 3))
    expected = sum(
        float(stein(x, y, s, t))
        for x, s in zip(positions, scores, strict=True)
        for y, t in zip(positions, scores, strict=True)
    )
    assert _stein_sum(positions, scores) == pytest.approx(expected, rel=1e-4)


@pytest.mark.slow
def test_stein_scales_as_one_over_the_root_of_draws():
    """n KSD^2 has mean E k0(x, x), which for a standard Gaussian in d dimensions is E|s|^2 + d = 2
    d.
    """
    for num_draws in (100, 400, 1600):
        found = [
            num_draws
            * kernel_stein_discrepancy(
                GAUSSIAN, gaussian_draws(num_draws, seed), length_scale=STANDARD_DEVIATIONS
            )
            ** 2
            for seed in range(40)
        ]
        error = np.std(found, ddof=1) / math.sqrt(len(found))
        assert abs(np.mean(found) - 6.0) < threshold(3) * error
        assert error < 0.5


def test_stein_sees_a_wrong_variance():
    right = kernel_stein_discrepancy(GAUSSIAN, gaussian_draws(1000))
    wrong = kernel_stein_discrepancy(GAUSSIAN, gaussian_draws(1000, variance=1.5))
    assert right < 0.12
    assert wrong > 2.0 * right


@pytest.mark.slow
def test_stein_sees_the_bias_of_sghmc():
    target = amagold.models.double_well()
    settings = dict(friction=0.25, num_steps=10, gradient=amagold.gradients.noisy(1.5))
    found = {}
    for name, sampler in {
        "exact": amagold.amagold(target, step_size=0.25, **settings),
        "biased": amagold.sghmc(target, step_size=0.25, **settings),
    }.items():
        draws = amagold.run_chains(sampler, jax.random.key(0), jnp.zeros(50), 40, num_burn_in=60)
        found[name] = kernel_stein_discrepancy(target, draws.position, length_scale=1.0)
    assert found["biased"] > 2.0 * found["exact"]


def test_stein_pools_chains_and_thins():
    draws = gaussian_draws(600)
    whole = kernel_stein_discrepancy(GAUSSIAN, draws)
    assert kernel_stein_discrepancy(GAUSSIAN, draws.reshape(6, 100, 3)) == pytest.approx(whole)
    every_other = kernel_stein_discrepancy(
        GAUSSIAN, draws[np.unique(np.linspace(0, 599, 50).astype(int))]
    )
    assert kernel_stein_discrepancy(GAUSSIAN, draws, max_draws=50) == pytest.approx(every_other)


def test_stein_takes_trees_and_data():
    def log_likelihood(position, example):
        return -0.5 * (example - position["a"] - position["b"].sum()) ** 2

    def log_prior(position):
        return -0.5 * (position["a"] ** 2 + jnp.sum(position["b"] ** 2))

    target = amagold.Posterior(
        log_likelihood, log_prior, np.ones(5, np.float32), init={"a": 0.0, "b": np.zeros(2)}
    )
    generator = np.random.default_rng(2)
    draws = {"a": generator.normal(size=(2, 30)), "b": generator.normal(size=(2, 30, 2))}
    assert 0.0 < kernel_stein_discrepancy(target, draws) < 50.0


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (
            lambda: kernel_stein_discrepancy(GAUSSIAN, gaussian_draws(9), kernel="rbf"),
            "kernel must be 'imq'",
        ),
        (
            lambda: kernel_stein_discrepancy(GAUSSIAN, gaussian_draws(9), max_draws=1),
            "max_draws must be a whole number",
        ),
        (
            lambda: kernel_stein_discrepancy(GAUSSIAN, gaussian_draws(9), length_scale=0.0),
            "length_scale must be one positive number",
        ),
        (
            lambda: kernel_stein_discrepancy(GAUSSIAN, gaussian_draws(9)[:, :, None, None]),
            "draws must have leading axes",
        ),
        (
            lambda: kernel_stein_discrepancy(GAUSSIAN, gaussian_draws(1)),
            "draws must hold at least 2 positions",
        ),
        (
            lambda: kernel_stein_discrepancy(GAUSSIAN, gaussian_draws(9) * np.nan),
            "draws must be finite",
        ),
        (
            lambda: kernel_stein_discrepancy(GAUSSIAN, 1.0),
            "draws must hold positions along a leading axis",
        ),
        (
            lambda: kernel_stein_discrepancy(
                amagold.Density(gaussian_log_density, lambda at: at[0] > 0), gaussian_draws(9)
            ),
            "target must have no domain",
        ),
    ],
)
def test_stein_bad_input(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def posterior(num_chains=4, num_draws=500, seed=0):
    generator = np.random.default_rng(seed)
    return {
        "weights": generator.normal(size=(num_chains, num_draws, 3)),
        "bias": generator.normal(size=(num_chains, num_draws)),
    }


def dataset(variables):
    return xarray.Dataset(
        {
            name: (("chain", "draw", f"{name}_at")[: values.ndim], values)
            for name, values in variables.items()
        }
    )


def test_independent_draws_look_good():
    good = dataset(posterior())
    assert 1500 < minimum_ess(good) < 2600
    assert maximum_r_hat(good) < 1.01
    assert maximum_r_hat(good.isel(chain=[0])) < 1.05, "a lone chain is compared half against half"
    assert 300 < minimum_ess(good.isel(chain=[0])) < 700
    assert minimum_ess(good.transpose("draw", "weights_at", "chain")) == minimum_ess(good)


def frozen_everywhere(variables):
    variables["weights"][:, :, 1] = 0.5


def frozen_apart(variables):
    variables["weights"][:, :, 1] = np.arange(4)[:, None]


def one_frozen_chain(variables):
    variables["bias"][2] = 0.1


def not_finite(variables):
    variables["bias"][1, 7] = np.nan


@pytest.mark.parametrize("spoil", [frozen_everywhere, frozen_apart, one_frozen_chain, not_finite])
def test_a_frozen_chain_never_looks_good(spoil):
    variables = posterior()
    spoil(variables)
    assert minimum_ess(dataset(variables)) == 1.0
    assert maximum_r_hat(dataset(variables)) == math.inf


@pytest.mark.parametrize("is_factor", [False, True])
def test_ones_of_correlations_are_no_parameters(is_factor):
    free = np.random.default_rng(1).uniform(-0.9, 0.9, size=(4, 500))
    one, zero = np.ones_like(free), np.zeros_like(free)
    rows = [[one, free], [free, one]]
    if is_factor:
        rows = [[one, zero], [free, np.sqrt(1.0 - free**2)]]
    found = np.stack([np.stack(row, axis=-1) for row in rows], axis=-2)
    dims = ("chain", "draw", "row", "column")
    assert maximum_r_hat(xarray.Dataset({"matrix": (dims, found)})) < 1.01
    assert 1500 < minimum_ess(xarray.Dataset({"matrix": (dims, found)})) < 2600
    # what else does not move is seen
    stuck = found.copy()
    stuck[..., 1, 0] = 0.5
    assert maximum_r_hat(xarray.Dataset({"matrix": (dims, stuck)})) == math.inf


def test_a_slow_coordinate_is_found_among_good_ones():
    variables = posterior()
    slow = np.cumsum(variables["weights"][:, :, 2], axis=1)
    variables["weights"][:, :, 2] = slow
    assert minimum_ess(dataset(variables)) < 40
    assert maximum_r_hat(dataset(variables)) > 1.1


def test_convergence_bad_input():
    with pytest.raises(ValueError, match="posterior must hold at least one variable"):
        minimum_ess(xarray.Dataset())
    with pytest.raises(ValueError, match=r"posterior must have dimensions \(chain, draw"):
        maximum_r_hat(xarray.Dataset({"a": (("sample",), np.zeros(9))}))
    with pytest.raises(ValueError, match="posterior must hold at least 4 draws per chain, got 3"):
        minimum_ess(dataset(posterior(num_draws=3)))


def test_cost_adds_up():
    good = dataset(posterior())
    counts = np.full((4, 500), 20)
    found = effective_cost(good, counts, np.full((4, 500), 100), 100, 2000 * 10)
    assert found.minimum_ess == minimum_ess(good)
    assert found.num_gradients == 20_000
    # (20 + 100) examples x 2000 transitions over N = 100
    assert found.num_data_passes == pytest.approx(2400.0)
    assert found.ess_per_gradient == pytest.approx(found.minimum_ess / 20_000)
    assert found.ess_per_data_pass == pytest.approx(found.minimum_ess / 2400.0)


def test_cost_without_data_and_of_long_runs():
    good = dataset(posterior())
    found = effective_cost(good, 0, 0, None, 10)
    assert found.num_data_passes is None
    assert found.ess_per_data_pass is None
    long = effective_cost(good, np.full(3, 2**31 - 1, np.int32), 0, 2**20, 10)
    assert long.num_data_passes == pytest.approx(3 * 2**11, rel=1e-6)


def test_cost_bad_input():
    good = dataset(posterior())
    with pytest.raises(ValueError, match="num_gradients must be a whole number"):
        effective_cost(good, 0, 0, None, -1)
    assert effective_cost(good, 0, 0, None, 0).ess_per_gradient == np.inf
    with pytest.raises(ValueError, match="must not be negative"):
        effective_cost(good, -5, 0, 10, 1)
