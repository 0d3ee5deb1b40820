"""Remainders: right for every family, whatever the likelihood's own scale, the step, and the units
of the data.
"""

import math
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from doubles import some_of
from false_alarms import PLANTED
from quadrature import moved
from regressions import FAMILIES as REGRESSIONS
from small_posteriors import far_apart

import amagold
from amagold import acceptance, gradients, models
from amagold.acceptance._firefly_bounds import curvatures, gaps_of
from amagold.acceptance._remainders import ROUNDING, Remainder, derivative, remainder
from amagold.target._linear_bounds import LinearBounds

ROWS, DECADES = 12, np.arange(-6.0, 3.0)
ONES = np.ones((ROWS, 1), np.float32)
CLASSES = np.arange(ROWS) % 3


def generator():
    return np.random.default_rng(2)


def hidden(z, example):
    """A user's own: Student-t about an offset that the predictor knows nothing of, so that z is
    small where residuals cancel.
    """
    _, y = example
    return -2.0 * jnp.log1p((y - (z + 30.0)) ** 2 / 3.0)


def own():
    # constants a hundred times too large: valid, and no measure of the likelihood's scale
    bounds = LinearBounds(
        lambda position, example: jnp.dot(example[0], position), hidden, (130.0, 140.0, 160.0)
    )
    data = ONES, (30.0 + generator().standard_t(3, ROWS)).astype(np.float32)
    return amagold.Posterior(
        lambda at, example: hidden(jnp.dot(example[0], at), example),
        lambda at: -jnp.sum(at**2),
        data,
        bounds=bounds,
    )


# a target, the spread of z at the reference, and the likelihood's own scale: a step is that times
# ten to the -6 up to 2
FAMILIES = {
    "logistic": (models.logistic(ONES, CLASSES > 0), 2.0, 2.0),
    "probit": (models.probit(ONES, CLASSES > 0), 2.0, 1.0),
    "softmax": (models.softmax(ONES, CLASSES), 2.0, 1.4),
    "poisson": (models.poisson(ONES, 5 * CLASSES), 1.0, 0.3),
    "a user's own": (own(), 1.0, 1.0),
}
for name in [name for name in REGRESSIONS if name not in FAMILIES]:
    target = REGRESSIONS[name].model(ONES, REGRESSIONS[name].y[:ROWS])
    # one that grows like exp(z) is infinite in float32 from 89 on
    FAMILIES[name] = (target, 1.0, 0.3 if target.bounds.growth else 1.0)
for unit in (1e-4, 0.1, 1.0, 1e4):
    numbers = unit * generator().standard_t(3, ROWS)
    FAMILIES[f"linear in units of {unit:g}"] = (
        models.linear(ONES, numbers, noise_scale=unit, standardize=False),
        unit,
        unit,
    )
    FAMILIES[f"robust in units of {unit:g}"] = (
        models.robust(ONES, numbers, noise_scale=unit, standardize=False),
        unit,
        unit,
    )


def places(target, spread, scale):
    """A predictor at the reference for each row, and steps of all sizes."""
    shape = jax.eval_shape(
        target.bounds.predictor,
        target.init if target.init is not None else np.zeros(1, np.float32),
        row(target, 0),
    ).shape
    numbers = generator()
    centers = spread * numbers.normal(size=(ROWS, *shape))
    steps = (
        scale
        * 10.0 ** DECADES.reshape(-1, 1, *(1 for _ in shape))
        * numbers.uniform(-1.0, 1.0, (len(DECADES), ROWS, *shape))
    )
    return centers.astype(np.float32), steps.astype(np.float32)


def row(target, number):
    return jax.tree.map(lambda leaf: leaf[number], target.data)


def in_double(energy, order, center, step, is_near):
    """The remainder in float64: by forty nodes where it is small, by subtraction where it is not;
    and the size of its terms.
    """

    def along(place):
        return energy(center + place * step)

    nodes, weights = np.polynomial.legendre.leggauss(40)
    at = 0.5 * (1.0 + nodes)
    factors = 0.5 * weights * (1.0 - at) ** order / math.factorial(order)
    integral = jnp.dot(factors, jax.vmap(derivative(along, order + 1))(jnp.asarray(at)))
    terms = jnp.stack(
        [-derivative(along, number)(0.0) / math.factorial(number) for number in range(order + 1)]
    )
    return jnp.where(is_near, integral, along(1.0) + terms.sum()), jnp.abs(along(1.0)) + jnp.abs(
        terms
    ).sum()


@pytest.mark.few(3)
@pytest.mark.parametrize("order", some_of([0, 1, 2], 2))
@pytest.mark.parametrize("name", FAMILIES)
def test_remainders_are_right_at_every_scale(name, order):
    target, spread, scale = FAMILIES[name]
    outcome = target.bounds.outcome
    centers, steps = places(target, spread, scale)

    def over_all(function):
        return jax.jit(jax.vmap(jax.vmap(function), in_axes=(None, 0, None)))

    def found(center, step, example):
        return remainder(lambda z: -outcome(z, example), order, center, step)

    value, rounding = (
        np.asarray(part, np.float64) for part in over_all(found)(centers, steps, target.data)
    )
    with jax.enable_x64(True):
        wide = jax.tree.map(
            lambda leaf: np.asarray(leaf, np.float64) if leaf.dtype == np.float32 else leaf,
            (centers, steps, target.data),
        )

        def truth(center, step, example):
            return in_double(
                lambda z: -outcome(z, example),
                order,
                center,
                step,
                jnp.abs(step).max() < 0.5 * scale,
            )

        wanted, size = (np.asarray(part) for part in over_all(truth)(*wide))
    errors = np.abs(value - wanted) - 1e-14 * size  # which float64 itself may be off by
    assert np.all(np.isfinite(value))
    # never worse than a subtraction in float32, nor than what is said of it
    own_rounding = 100.0 * ROUNDING if name == "a user's own" else 0.0
    assert np.all(errors <= (2.0 * ROUNDING + own_rounding) * size)
    assert np.all(
        errors
        <= 10.0 * rounding
        + 2e-3 * np.abs(wanted)
        + ROUNDING * np.abs(wanted).max(axis=1, keepdims=True)
    )
    # and near the reference right to a thousandth of the largest, where a subtraction has lost
    # everything
    near = DECADES <= -1
    assert np.all(errors[near] <= 2e-3 * np.abs(wanted[near]).max(axis=1, keepdims=True))
    if order == 2 and "linear" not in name:
        assert np.all(np.abs(wanted[0]).max() < 1e-3 * ROUNDING * size[0].min()), (
            "there a subtraction would be noise"
        )


@pytest.mark.parametrize("unit", [0.1, 10.0])
def test_gaps_stay_within_their_bounds_in_any_units(unit):
    """Firefly's: nothing below the parabola, nothing above what it can be off by, for correct
    bounds.
    """
    numbers = generator()
    X = numbers.normal(size=(300, 2)).astype(np.float32)
    target = models.robust(X, unit * numbers.standard_t(4, 300), noise_scale=unit, intercept=False)
    center, away = (unit * numbers.normal(size=2).astype(np.float32) for _ in range(2))

    @jax.jit
    def over(steps):
        def one(step):
            gaps, rounding = gaps_of(target.bounds, center, center, center + step, target.data)
            z = target.data.predictors @ step
            most = jax.vmap(lambda at, example: curvatures(target.bounds, at, example)[1])(
                target.data.predictors @ center, target.data
            )
            return gaps[:, 1], rounding[:, 1], 0.5 * most * z**2

        return jax.vmap(one)(steps)

    gaps, rounding, most = (
        np.asarray(part)
        for part in over(10.0 ** np.linspace(-3.0, 1.0, 41, dtype=np.float32)[:, None] * away)
    )
    slack = 1e-3 * most + rounding
    assert np.all(gaps >= -slack)
    assert np.all(gaps <= most + slack)
    assert np.mean(slack < 0.1 * most) > 0.95, "the slack does not hide what it should find"


def by_three_nodes(energy, order, center, step):
    """The planted bug: three nodes below an absolute step of a half, whatever the likelihood's
    scale.
    """

    def along(place):
        return energy(center + place * step)

    direct = along(1.0) - sum(
        derivative(along, number)(0.0) / math.factorial(number) for number in range(order + 1)
    )
    nodes, weights = (np.asarray(found, np.float32) for found in np.polynomial.legendre.leggauss(3))
    at = 0.5 * (1.0 + nodes)
    factors = 0.5 * weights * (1.0 - at) ** order / math.factorial(order)
    integral = jnp.dot(factors, jax.vmap(derivative(along, order + 1))(jnp.asarray(at)))
    found = jnp.where(jnp.max(jnp.abs(step)) < 0.5, integral, direct)
    return Remainder(found, ROUNDING * jnp.abs(found))


def in_units(unit, order=1, num_chains=40_000):
    case = far_apart(unit)
    test = acceptance.tuna(order, case.center, noise=1.0, most=2000.0)
    sampler = amagold.amagold(
        case.target,
        step_size=case.step_size,
        friction=0.3,
        num_steps=3,
        gradient=gradients.minibatch(2),
        acceptance=test,
    )
    return moved(case.density, sampler, num_chains)


@pytest.mark.slow
@pytest.mark.parametrize("unit", [0.1, 10.0])
@pytest.mark.parametrize("order", [1, 2])
def test_a_posterior_is_the_same_in_any_units(unit, order):
    found = in_units(unit, order)
    assert int(np.max(found.info.broken_bound)) == -1
    assert 0.05 < float(np.mean(found.info.is_accepted)) < 0.95
    assert found.change < 1.0
    assert found.error < 1.0


@pytest.mark.slow
def test_an_absolute_step_is_seen_in_other_units(monkeypatch):
    jax.clear_caches()
    monkeypatch.setattr(sys.modules["amagold.acceptance._remainders"], "remainder", by_three_nodes)
    found = in_units(0.1)
    jax.clear_caches()
    assert found.worst > PLANTED
