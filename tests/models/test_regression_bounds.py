"""The constants that exact minibatch tests rest on: they hold, and are no larger than needed."""

import math
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from doubles import some_of
from jax.flatten_util import ravel_pytree
from regressions import CLASSES, GENERATOR, KNOWN, MAKERS, X
from scipy import special, stats

import amagold
from amagold import models
from amagold.acceptance._firefly_bounds import curvatures
from amagold.acceptance._remainders import remainder_differences
from amagold.mode._reference import Reference
from amagold.models._softmax import Softmax
from amagold.target._normal_tail import log_normal_cdf


def derivatives(function, number):
    for _ in range(number):
        function = (lambda inner: lambda at: jax.jvp(inner, (at,), (jnp.ones_like(at),))[1])(
            function
        )
    return function


@pytest.mark.parametrize("name", [name for name in KNOWN if name != "softmax"])
def test_the_constants_bound_the_derivatives_and_are_no_larger_than_needed(name):
    target = MAKERS[name](X)
    outcome, bounds = target.bounds.outcome, target.bounds
    grid = np.concatenate([np.linspace(-40.0, 40.0, 8_001), np.linspace(-3.0, 3.0, 6_001)]).astype(
        np.float32
    )
    scale = (lambda z, example: 1.0) if bounds.scale is None else bounds.scale

    def share(z, example, order):
        """Of what the derivative may be where z is the reference, but for the constant."""
        return derivatives(lambda z: outcome(z, example), order)(z) / scale(z, example)

    for order in range(3):
        over_grid = jax.vmap(partial(share, order=order + 1), (0, None))
        found = np.abs(jax.jit(jax.vmap(over_grid, (None, 0)))(grid, target.data))
        if not math.isfinite(bounds.derivatives[order]):
            assert order == 0
            continue
        assert found.max() <= bounds.derivatives[order] * (1.0 + 1e-5) + 1e-6
        assert found.max() >= 0.99 * bounds.derivatives[order]


def softmax_derivatives(z, u, v):
    """|D f|, |D^2 f| and D^3 f[u, u, v] of log sum_k exp(z_k) - z_0: cumulants of the numbers u_k
    and v_k under the class probabilities.
    """
    p = special.softmax(z.astype(np.float64), axis=-1)
    slope = p - np.eye(z.shape[-1])[0]
    curvature = p[:, :, None] * np.eye(z.shape[-1]) - p[:, :, None] * p[:, None, :]
    u, v = (each - np.sum(p * each, axis=-1, keepdims=True) for each in (u, v))
    return (
        np.linalg.norm(slope, axis=-1),
        np.linalg.eigvalsh(curvature)[:, -1],
        np.sum(p * u * u * v, axis=-1),
    )


def random_logits(num_classes, size=4000):
    """Logits from even to extreme, a quarter with two classes that share the probability, and unit
    vectors.
    """
    z = np.array([0.3, 1.0, 3.0, 30.0]).repeat(size // 4)[:, None] * GENERATOR.normal(
        size=(size, num_classes)
    )
    z[::4, 2:] = -60.0
    u, v = GENERATOR.normal(size=(2, size, num_classes))
    u[::2] = np.eye(num_classes)[0] - np.eye(num_classes)[1]
    v[: size // 2] = u[: size // 2]
    return z.astype(np.float32), *(
        each / np.linalg.norm(each, axis=-1, keepdims=True) for each in (u, v)
    )


def test_the_constants_of_the_softmax():
    """Operator norms for random and extreme logits; two classes attain them."""
    most = np.zeros(3)
    for num_classes in range(2, 11):
        found = softmax_derivatives(*random_logits(num_classes))
        most = np.maximum(most, [np.abs(each).max() for each in found])
    claimed = np.array(models.softmax(X, CLASSES).bounds.derivatives)
    assert np.all(most <= claimed * (1.0 + 1e-6))
    assert np.all(most >= 0.99 * claimed)


def test_the_softmax_has_these_derivatives():
    z, u, v = random_logits(4, 400)
    example = jax.tree.map(lambda leaf: leaf[0], models.softmax(X, CLASSES).data)._replace(
        label=jnp.int32(0)
    )

    def energy(z):
        return -Softmax(4)(z, example)

    def third(z, u, v):
        return jax.grad(
            lambda t: derivatives(lambda s: energy(z + t * v + s * u), 2)(jnp.float32(0.0))
        )(jnp.float32(0.0))

    slope, _, wanted = softmax_derivatives(z, u, v)
    np.testing.assert_allclose(
        np.linalg.norm(jax.vmap(jax.grad(energy))(z), axis=-1), slope, atol=1e-5
    )
    np.testing.assert_allclose(
        jax.vmap(third)(z, u.astype(np.float32), v.astype(np.float32)), wanted, atol=1e-5
    )


def test_the_normal_tail_keeps_three_derivatives():
    t = np.linspace(-30.0, 30.0, 6001).astype(np.float32)
    exact, x = t.astype(np.float64), np.maximum(-t.astype(np.float64), 3.0)
    zeta = np.zeros_like(x)
    for level in range(200, 2, -1):
        zeta = level / (x + zeta)
    epsilon = 2.0 / (x + zeta)
    delta = 1.0 / (x + epsilon)
    slope = np.exp(stats.norm.logpdf(exact) - special.log_ndtr(exact))
    far, tail = t < -3.0, x + delta
    wanted = [
        special.log_ndtr(exact),
        np.where(far, tail, slope),
        -np.where(far, tail * delta, slope * (exact + slope)),
        np.where(
            far,
            tail * delta**2 * epsilon * (zeta - epsilon),
            slope * ((exact + slope) * (exact + 2.0 * slope) - 1.0),
        ),
    ]
    for order, tolerance in enumerate((1e-7, 1e-5, 3e-5, 1e-4)):
        found = jax.jit(jax.vmap(derivatives(log_normal_cdf, order)))(t)
        np.testing.assert_allclose(
            found, wanted[order], rtol=3e-5 if order < 3 else 2e-3, atol=tolerance
        )
        assert np.all(far == (t < -3.0))
    # the tail's third derivative, where automatic differentiation returns -0.6
    assert (
        abs(float(derivatives(log_normal_cdf, 3)(jnp.float32(-30.0))) - wanted[3][0])
        < 1e-3 * wanted[3][0]
    )


def shares_of_the_bounds(target, order, num_pairs=400):
    """|R_i(theta*) - R_i(theta)| / (c_i M) for random pairs of positions, in the Euclidean norm."""
    bounds, data = target.bounds, target.data
    flat, structure = ravel_pytree(target.init)
    generator = np.random.default_rng(order)
    center = 0.3 * generator.normal(size=flat.shape).astype(np.float32)
    is_scalar = bounds.is_scalar(target.init, jax.tree.map(lambda leaf: leaf[0], data))

    @jax.jit
    def shares(here, there):
        def norm(row):
            jacobian = jax.jacrev(lambda at: jnp.atleast_1d(bounds.predictor(structure(at), row)))(
                flat
            )
            return jnp.linalg.norm(jacobian, 2)

        norms = jax.vmap(norm)(data)
        scales = 1.0
        if bounds.scale is not None:
            scales = jax.vmap(
                lambda row: bounds.scale(bounds.predictor(structure(center), row), row)
            )(data)

        def one(here, there):
            distance, reach, other = (
                jnp.linalg.norm(v) for v in (here - there, here - center, there - center)
            )
            size = bounds.magnitude(order, distance, reach, other, norms.max(), is_scalar=is_scalar)
            reference = Reference(structure(center), jnp.zeros_like(flat), None)
            differences = remainder_differences(
                bounds, reference, order, structure(here), structure(there), data
            )
            return differences, scales * norms ** (order + 1) * size

        return jax.vmap(one)(here, there)

    sizes = np.exp(generator.uniform(np.log(0.05), np.log(4.0), (2, num_pairs, 1)))
    steps = sizes * generator.normal(size=(2, num_pairs, len(flat)))
    # nearly the same place: the sharpest case
    steps[1, ::2] = steps[0, ::2] * generator.uniform(0.8, 1.2, (num_pairs // 2, 1))
    differences, limits = shares(*(center + steps).astype(np.float32))
    return np.abs(differences), np.asarray(limits)


@pytest.mark.parametrize("order", some_of([0, 1, 2], 2))
@pytest.mark.parametrize("name", KNOWN)
def test_remainders_stay_within_their_bounds(name, order):
    target = MAKERS[name](X[:, :1], intercept=False)
    if math.isinf(target.bounds.derivatives[order]):
        with pytest.raises(ValueError, match="order must be another than 0"):
            shares_of_the_bounds(target, order)
        return
    differences, limits = shares_of_the_bounds(target, order)
    if target.bounds.derivatives[order] == 0.0:
        assert differences.max() < 1e-3, "a parabola has no remainder of order 2"
        return
    # a remainder of some units is rounded, which two positions close together do not share
    assert np.all(differences <= 1.001 * limits + 2e-5)
    share = (differences / np.maximum(limits, 1e-3))[limits > 1e-3]
    assert share.max() > 0.3, "the bounds say something"
    if not target.bounds.growth and name != "softmax":
        assert np.any(differences > 0.5 * limits + 2e-5), (
            "half of the constant is seen to be too small"
        )


@pytest.mark.parametrize("name", ["logistic", "poisson", "softmax"])
def test_bounds_hold_with_several_predictors_and_standardised_ones(name):
    target = MAKERS[name](X * np.array([1.0, 0.1]) + np.array([0.0, 0.5]), standardize=True)
    shifted = amagold.Posterior(
        target.log_likelihood, target.log_prior, target.data, init=target.init, bounds=target.bounds
    )
    differences, limits = shares_of_the_bounds(shifted, 1, 50)
    assert np.all(differences <= limits * (1.0 + 1e-3) + 1e-4)


@pytest.mark.parametrize("name", KNOWN)
def test_outcomes_stay_between_their_parabolas(name):
    target = MAKERS[name](X)
    if name == "softmax" or target.bounds.growth:
        assert target.bounds.upper_curvature == 0.0, "concave"
        return
    bounds, example = target.bounds, jax.tree.map(lambda leaf: leaf[0], target.data)
    references, z = (
        np.linspace(-6.0, 6.0, 25, dtype=np.float32),
        np.linspace(-12.0, 12.0, 481, dtype=np.float32),
    )
    values, slopes = jax.vmap(lambda at: jax.value_and_grad(bounds.outcome)(at, example))(
        references
    )
    gaps = (
        jax.vmap(lambda at: bounds.outcome(at, example))(z)[None]
        - values[:, None]
        - slopes[:, None] * (z - references[:, None])
    )
    squares = 0.5 * (z - references[:, None]) ** 2
    lower, room = jax.vmap(lambda at: curvatures(bounds, at, example))(references)
    lower, upper = np.full(25, lower), np.full(25, room - lower)
    assert np.all(gaps >= -lower[:, None] * squares - 1e-4)
    assert np.all(gaps <= upper[:, None] * squares + 1e-4)
    if bounds.lower_curvature is not None:
        assert np.any(gaps < -0.95 * lower[:, None] * squares - 1e-3), (
            "five in a hundred less would be too little"
        )


def slowest(distance, reach, other, order):
    """The largest change of a remainder whose slope is all that it may be, |z| or z^2 / 2, over a
    grid of where z may be.
    """
    here, there = (np.linspace(-limit, limit, 2001) for limit in (reach, other))
    here, there = np.meshgrid(here, there, indexing="ij")
    allowed = np.abs(here - there) <= distance + 1e-9
    remainder = [None, lambda z: z * np.abs(z) / 2.0, lambda z: z**3 / 6.0][order]
    return np.max(np.where(allowed, np.abs(remainder(there) - remainder(here)), 0.0))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize(
    "reaches",
    [
        (1.0, 0.6),
        *(pytest.param(both, marks=pytest.mark.slow) for both in ((1.0, 1.0), (0.3, 2.0))),
    ],
)
def test_a_number_does_no_worse_than_its_bound_and_as_badly(order, reaches):
    """Neither too small, which no test could be exact with, nor larger than what can happen."""
    bounds = amagold.LinearBounds(None, None, (1.0, 1.0, 1.0))
    for distance in np.linspace(abs(reaches[0] - reaches[1]), sum(reaches), 7)[1:]:
        numbers = [jnp.float32(value) for value in (distance, *reaches)]
        found = float(bounds.magnitude(order, *numbers, 1.0, is_scalar=True))
        assert found == pytest.approx(slowest(distance, *reaches, order), rel=5e-3)
        assert float(
            bounds.magnitude(order, *numbers[:1], *numbers[:0:-1], 1.0, is_scalar=True)
        ) == pytest.approx(found), "symmetric"
        assert float(bounds.magnitude(order, *numbers, 1.0)) >= found * (1.0 - 1e-6), (
            "a vector has more room"
        )


@pytest.mark.parametrize("order", [1, 2])
def test_vectors_stay_within_their_bound(order):
    """Remainders along one direction and along the length, each as steep as it may be, at random
    pairs of vectors.
    """
    bounds = amagold.LinearBounds(None, None, (1.0, 1.0, 1.0))
    generator = np.random.default_rng(order)
    here, there = generator.normal(size=(2, 20_000, 3)) * np.exp(
        generator.normal(size=(2, 20_000, 1))
    )
    there[::2] = here[::2] + 0.3 * generator.normal(size=(10_000, 3))
    length = lambda vectors: np.linalg.norm(vectors, axis=-1)  # noqa: E731
    limits = np.asarray(
        bounds.magnitude(
            order, *map(jnp.asarray, (length(here - there), length(here), length(there))), 1.0
        )
    )
    remainders = [None, lambda z: z * np.abs(z) / 2.0, lambda z: z**3 / 6.0][order]
    for part in (lambda vectors: vectors[:, 0], length):
        share = np.abs(remainders(part(there)) - remainders(part(here))) / limits
        assert 0.5 < share.max() <= 1.0 + 1e-5
