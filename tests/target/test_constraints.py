"""Constrained parameters: their maps and Jacobians, by automatic differentiation and quadrature."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import amagold
from amagold import transforms
from amagold.target._constrained import DensityOfConstrained, OfConstrained

KINDS = {
    "positive": (transforms.positive(), 4),
    "unit_interval": (transforms.unit_interval(), 4),
    "interval": (transforms.interval(-3.0, 5.0), 4),
    "simplex": (transforms.simplex(), 4),
    "ordered": (transforms.ordered(), 4),
}
FREE = np.random.default_rng(5).normal(0.0, 1.5, (3, 2, 4))


def test_no_kind_is_left_out():
    made = {name for name, value in vars(transforms).items() if _makes_a_kind(name, value)}
    assert made == set(KINDS)


def _makes_a_kind(name, value):
    made = getattr(value, "__annotations__", {}).get("return")
    return callable(value) and not name.startswith("_") and made is transforms.Constraint


@pytest.mark.parametrize("name", KINDS)
def test_there_and_back(name):
    kind, _ = KINDS[name]
    shown = kind(FREE)
    assert shown.dtype == np.float64
    assert np.all(kind.holds(shown))
    np.testing.assert_allclose(kind.inverse(shown), FREE, rtol=1e-9, atol=1e-9)
    # for JAX the same formula
    on_device = jax.jit(kind)(FREE.astype(np.float32))
    np.testing.assert_allclose(on_device, shown, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", KINDS)
def test_log_jacobians_are_those_of_automatic_differentiation(name):
    kind, size = KINDS[name]

    def coordinates(u):
        # the last share follows from the others
        return kind(u)[:size]

    with jax.enable_x64(True):
        for u in FREE.reshape(-1, size):
            _, wanted = np.linalg.slogdet(jax.jacfwd(coordinates)(jnp.asarray(u)))
            assert kind.log_jacobian(jnp.asarray(u)) == pytest.approx(wanted, rel=1e-10)


@pytest.mark.parametrize("name", KINDS)
def test_far_out_all_is_finite(name):
    kind, size = KINDS[name]
    for far in (-60.0, 60.0):
        u = jnp.full(size, far, jnp.float32)
        value, slope = jax.value_and_grad(kind.log_jacobian)(u)
        assert np.isfinite(value)
        assert np.all(np.isfinite(slope))
        assert np.all(np.isfinite(kind(u)))


def half_normal(x):
    return -0.5 * x[0] ** 2


def beta(x):
    return jnp.log(x[0]) + 3.0 * jnp.log1p(-x[0])


def dirichlet(x):
    return jnp.sum(jnp.array([0.0, 1.0, 2.0]) * jnp.log(x))


def normals(x):
    return -0.5 * jnp.sum(x**2)


# a log density of constrained parameters, and their known means
KNOWN = {
    "positive": (half_normal, [0.5], [np.sqrt(2.0 / np.pi)]),
    "unit_interval": (beta, [0.5], [2.0 / 6.0]),
    "simplex": (dirichlet, [0.2, 0.3, 0.5], [1.0 / 6.0, 2.0 / 6.0, 3.0 / 6.0]),
    "ordered": (normals, [-1.0, 1.0], [-1.0 / np.sqrt(np.pi), 1.0 / np.sqrt(np.pi)]),
}


def means_by_quadrature(target, log_density):
    """Means of what is reported, from sums over a grid of free numbers."""
    size = target.init.shape[0]
    axis = np.linspace(-14.0, 14.0, 1001 if size == 1 else 301)
    grid = np.stack(np.meshgrid(*[axis] * size, indexing="ij"), axis=-1).reshape(-1, size)
    log_values = np.asarray(jax.vmap(log_density)(jnp.asarray(grid, jnp.float32)), np.float64)
    weights = np.exp(log_values - log_values.max())
    return weights @ target.transform(grid) / weights.sum()


@pytest.mark.parametrize("name", KNOWN)
def test_densities_come_out_as_they_were_written(name):
    log_density, init, means = KNOWN[name]
    target = amagold.Density(log_density, init=np.array(init), transform=KINDS[name][0])
    np.testing.assert_allclose(
        means_by_quadrature(target, target.log_density), means, rtol=1e-3, atol=1e-3
    )
    # the Jacobian left out is seen
    without = OfConstrained(target.log_density.function, target.transform)
    assert isinstance(target.log_density, DensityOfConstrained)
    wrong = means_by_quadrature(target, without)
    assert np.max(np.abs(wrong - means)) > 0.05


def posterior(**options):
    def log_likelihood(position, x):
        return -0.5 * ((x - 1.0) / position["scale"]) ** 2 - jnp.log(position["scale"])

    def log_prior(position):
        return -0.5 * position["scale"] ** 2

    settings = {
        "init": {"scale": 1.0, "free": np.zeros(2)},
        "transform": {"scale": transforms.positive()},
    }
    return amagold.Posterior(
        log_likelihood, log_prior, np.arange(5.0, dtype=np.float32), **(settings | options)
    )


BOUNDS = amagold.LinearBounds(lambda position, x: x, lambda z, x: z, (1.0, 1.0, 1.0))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"transform": {"sigma": transforms.positive()}}, "but 'sigma' is none: it has 'free'"),
        ({"transform": {"scale": 3}}, "transform must map names of parameters to their kinds"),
        ({"transform": {}}, "transform must map names of parameters to their kinds, got none"),
        ({"transform": 3}, "transform must map a position to what is reported"),
        ({"init": np.zeros(2)}, "but 'scale' is none: it has no names"),
        ({"init": {"scale": 0.0}}, "'scale' must be greater than zero, got"),
        ({"init": {"scale": np.nan}}, "'scale' must be greater than zero, got"),
        ({"bounds": BOUNDS}, "bounds must be None where transform names constrained parameters"),
    ],
)
def test_what_cannot_be_is_said(options, words):
    with pytest.raises(ValueError, match=words):
        posterior(**options)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("unit_interval", 1.0),
        ("interval", -3.0),
        ("simplex", [0.5, 0.6]),
        ("simplex", [1.0]),
        ("ordered", [1.0, 1.0]),
    ],
)
def test_starts_lie_inside(name, value):
    with pytest.raises(ValueError, match=r"the position must be .*; start inside"):
        amagold.Density(half_normal, init=np.array(value), transform=KINDS[name][0])


def test_ends_of_an_interval_are_checked():
    for ends in ((1.0, 1.0), (2.0, 1.0), (0.0, np.inf)):
        with pytest.raises(ValueError, match="lower must be less than upper"):
            transforms.interval(*ends)


def test_functions_are_checked_by_what_they_are_given(unchecked):
    target = amagold.Density(
        lambda x: jnp.dot(x, jnp.ones(2)),
        init=np.full(3, 1.0 / 3.0),
        transform=transforms.simplex(),
    )
    with pytest.raises(ValueError, match=r"must work for position = float32\[3\]"):
        target.check(target.init)


def test_a_record_of_numbers_stays_one():
    """A new number in a prior needs no new program."""
    traces = []

    @amagold.core.trees.record()
    class Prior:
        rate: jax.Array

        def __call__(self, x):
            traces.append(1)
            return -self.rate * x

    program = jax.jit(lambda target, u: target.log_prior(u))
    build = partial(amagold.Density, init=1.0, transform=transforms.positive())
    found = [
        float(program(build(Prior(jnp.asarray(rate))), jnp.asarray(0.5))) for rate in (1.0, 2.0)
    ]
    np.testing.assert_allclose(found, [0.5 - np.exp(0.5), 0.5 - 2.0 * np.exp(0.5)], rtol=1e-6)
    assert len(traces) == 1
