"""Bounds that are found: they hold, are hardly larger than needed, and a wrong rule is seen."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings, strategies as st
from jax.scipy import special
from own_likelihoods import OWN, spread_rows

from amagold.target import _jet_program as program, _smooth_functions as smooth
from amagold.target._found_bounds import FoundSize
from amagold.target._intervals import Span, point, scaled
from amagold.target._jets import Jet, Space
from amagold.target._normal_tail import log_between

RADIUS = 7.0


def partial_derivatives(function, points, order):
    """All of an order, in float64, with an axis of points first."""
    with jax.enable_x64(True):
        for _ in range(order):
            function = jax.jacfwd(function)
        return np.asarray(jax.jit(jax.vmap(function))(jnp.asarray(points, jnp.float64)))


def jets_over(lows, highs, order=3):
    space = Space(len(lows), order)
    one = point(jnp.float32(1.0))
    return space, [
        Jet(space, {(): Span(jnp.float32(low), jnp.float32(high)), (place,): one})
        for place, (low, high) in enumerate(zip(lows, highs, strict=True))
    ]


def outside(function, lows, highs, seed=0):
    """How far sampled derivatives are outside their intervals, in units of their size; and how many
    intervals were finite.
    """
    space, jets = jets_over(lows, highs)
    found = program.on_jets(lambda *z: function(z), space, jets)
    shares = np.random.default_rng(seed).random((24, len(lows)))
    shares[:2] = [[0.0], [1.0]]
    points = lows + shares * (np.asarray(highs) - lows)
    worst, num_finite = 0.0, 0
    for order in range(4):
        wanted = partial_derivatives(lambda z: function(tuple(z)), points, order)
        for index in itertools.combinations_with_replacement(range(len(lows)), order):
            lo, hi = (np.float64(end) for end in found.parts.get(index, (0.0, 0.0)))
            if not (np.isfinite(lo) and np.isfinite(hi)):
                continue
            values = wanted[(slice(None), *index)]
            num_finite += 1
            assert np.isfinite(values).all()
            beyond = np.maximum(lo - values, values - hi).max()
            # float64's own rounding on the way
            worst = max(worst, beyond / (1e-7 + np.abs(values).max()))
    return worst, num_finite


CURVES = {
    "exp": (jnp.exp, -3.0, 3.0),
    "expm1": (jnp.expm1, -3.0, 3.0),
    "log": (jnp.log, 0.1, 9.0),
    "log1p": (jnp.log1p, -0.9, 9.0),
    "sqrt": (jnp.sqrt, 0.1, 9.0),
    "rsqrt": (jax.lax.rsqrt, 0.1, 9.0),
    "tanh": (jnp.tanh, -4.0, 4.0),
    "sigmoid": (jax.nn.sigmoid, -9.0, 9.0),
    "softplus": (jax.nn.softplus, -9.0, 9.0),
    "softplus by parts": (
        lambda x: jnp.clip(x, 0) + jnp.log1p(jnp.exp(-jnp.abs(x))),
        -9.0,
        9.0,
    ),
    "log of a rest": (lambda x: jnp.log1p(-special.ndtr(x)), -3.0, 3.0),
    "log of a sum": (lambda x: jnp.log(jnp.exp(2.0 * x) + jax.nn.sigmoid(x)), -3.0, 3.0),
    "erf": (special.erf, -3.0, 3.0),
    "erfc": (special.erfc, -3.0, 3.0),
    "ndtr": (special.ndtr, -5.0, 5.0),
    "log_ndtr": (special.log_ndtr, -9.0, 5.0),
    "log_between": (lambda x: log_between(x, jnp.float32(1.3)), -8.0, 5.0),
    "log_between, narrow": (lambda x: log_between(x, jnp.float32(0.2)), -8.0, 5.0),
    "log_between of widths": (lambda x: log_between(0.3 - x, x), 0.7, 9.0),
    "gammaln": (special.gammaln, 0.1, 30.0),
    "digamma": (special.digamma, 0.1, 30.0),
    "square": (jnp.square, -3.0, 3.0),
    "cube": (lambda x: x**3, -3.0, 3.0),
    "one over": (lambda x: 1.0 / x, 0.2, 4.0),
    "below zero": (lambda x: x**-2, -4.0, -0.2),
    "power": (lambda x: x**2.5, 0.1, 4.0),
    "other power": (lambda x: x**-0.3, 0.1, 4.0),
    "of two": (lambda x: 2.0**x, -3.0, 3.0),
    "log of exp": (lambda x: jnp.log(3.0 * jnp.exp(x)) ** 2, -3.0, 3.0),
    "logit": (special.logit, 0.05, 0.95),
    "betaln": (lambda x: special.betaln(x, 2.5), 0.2, 9.0),
    "logsumexp": (lambda x: special.logsumexp(jnp.stack([x, -x, 0.3 * x])), -3.0, 3.0),
    "sums": (lambda x: jnp.sum(jnp.cumsum(x * jnp.arange(3.0)) ** 2), -3.0, 3.0),
    "products": (lambda x: jnp.dot(jnp.array([1.0, -2.0]), jnp.stack([x**3, jnp.exp(x)])), -2, 2),
    "away from kinks": (lambda x: jnp.abs(x) * jnp.maximum(x, -1.0) ** 2, 0.1, 5.0),
}


QUICK = {"sums", "products", "softplus", "log_ndtr", "log_between", "gammaln"}


@pytest.mark.few(5)
@pytest.mark.parametrize(
    "name",
    [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in CURVES],
)
def test_intervals_hold_all_derivatives(name):
    function, low, high = CURVES[name]
    generator = np.random.default_rng(1)
    for width in (1e-3, 0.05, 0.5):
        for _ in range(3):
            start = generator.uniform(low, high - width * (high - low))
            ends = np.float32([start, start + width * (high - low)]).astype(np.float64)
            worst, num_finite = outside(lambda z: function(z[0]), ends[:1], ends[1:])
            assert worst <= 1e-6
            assert num_finite == 4, "all intervals are finite"


# each is finite wherever its input is
STEPS = {
    "add": lambda a, b: a + b,
    "subtract": lambda a, b: a - 0.5 * b,
    "multiply": lambda a, b: a * b,
    "divide": lambda a, b: a / (1.5 + jnp.square(b)),
    "exp": lambda a, b: jnp.exp(-jax.nn.softplus(a)),
    "log": lambda a, b: jnp.log(jnp.square(a) + 0.7),
    "log1p": lambda a, b: jnp.log1p(jnp.exp(0.3 * jnp.tanh(a))),
    "tanh": lambda a, b: jnp.tanh(a),
    "sigmoid": lambda a, b: jax.nn.sigmoid(a - b),
    "logaddexp": lambda a, b: jnp.logaddexp(a, b),
    "gamma": lambda a, b: special.gammaln(1.2 + jnp.square(a)),
    "normal": lambda a, b: special.log_ndtr(jnp.tanh(a) + b),
    "erf": lambda a, b: special.erf(a),
    "root": lambda a, b: jnp.sqrt(1.0 + jnp.square(a)) ** 1.7,
    "select": lambda a, b: jnp.where(jnp.square(a) > -1.0, a, jnp.exp(b)),
}


@pytest.mark.slow
@settings(max_examples=25, deadline=None, derandomize=True)
@given(
    steps=st.lists(
        st.tuples(st.sampled_from(sorted(STEPS)), st.integers(0, 9), st.integers(0, 9)),
        min_size=2,
        max_size=5,
    ),
    middle=st.tuples(st.floats(-1.0, 1.0), st.floats(-1.0, 1.0)),
    width=st.sampled_from([1e-3, 0.03, 0.3]),
)
def test_intervals_hold_all_derivatives_of_compositions(steps, middle, width):
    def function(z):
        values = list(z)
        for name, one, other in steps:
            values.append(STEPS[name](values[one % len(values)], values[other % len(values)]))
        return values[-1]

    lows = np.float32(middle).astype(np.float64)
    highs = np.float32(lows + width).astype(np.float64)
    worst, num_finite = outside(function, lows, highs)
    assert worst <= 1e-6
    assert num_finite == 10, "all intervals are finite"


def test_a_wrong_rule_is_outside_its_intervals(monkeypatch):
    def too_small(x):
        *others, third = smooth.logistic(x)
        return [*others, scaled(third, 0.9)]

    monkeypatch.setitem(program.RULES, "logistic", program.rules.of_curve(too_small))
    assert outside(lambda z: jax.nn.sigmoid(z[0]), np.array([0.1]), np.array([0.2]))[0] > 0.01


def found_size(own, example, radius=RADIUS, order=2):
    class Outcome:
        @staticmethod
        def of_numbers(numbers, row):
            return own.of_numbers(numbers, row)

    size = FoundSize(Outcome())
    return float(
        jax.jit(lambda z, row, rows: size(z, row, rows, radius, order))(
            jnp.float32(own.z), jax.tree.map(jnp.float32, example), spread_rows(own)
        )
    )


def brute_force(own, example, radius=RADIUS, order=2):
    """The largest derivative along unit vectors, over positions within the ball."""
    size, generator = len(own.z), np.random.default_rng(3)
    rows = spread_rows(own).astype(np.float64)
    if size == 1:
        places = np.linspace(-radius, radius, 401)[:, None]
    else:
        places = generator.normal(size=(600, size))
        places *= radius / np.linalg.norm(places, axis=1, keepdims=True)
        places *= generator.random((600, 1)) ** (1.0 / (2 * size))
    tensors = partial_derivatives(
        lambda w: own.of_numbers(list(jnp.asarray(own.z) + rows @ w), example), places, order + 1
    )
    units = generator.normal(size=(200, size))
    units /= np.linalg.norm(units, axis=1, keepdims=True)
    letters = "ijk"[: order + 1]
    along = np.einsum(
        f"p{letters}," + ",".join(f"u{letter}" for letter in letters) + "->pu",
        tensors,
        *[units] * (order + 1),
    )
    return np.abs(along).max()


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (len(OWN[name].z) > 1)) for name in OWN]
)
def test_found_bounds_hold_and_are_tight(name):
    own = OWN[name]
    for example in own.examples:
        found, wanted = found_size(own, example), brute_force(own, example)
        assert wanted * (1.0 - 1e-6) <= found <= own.loose * wanted + 1e-6


@pytest.mark.parametrize("order", [0, 1])
def test_bounds_of_lower_orders_hold(order):
    own = OWN["zero-inflated poisson"]
    for example in own.examples:
        wanted = brute_force(own, example, order=order)
        assert wanted * (1.0 - 1e-6) <= found_size(own, example, order=order) <= 2.0 * wanted


@pytest.mark.parametrize(
    ("name", "z", "radius", "wanted", "loose"),
    [
        ("logistic", 0.0, 6.0, 1.0 / (6.0 * math.sqrt(3.0)), 1.001),
        ("probit", 0.0, 4.0, 0.29572, 1.001),
        ("poisson", 0.0, 2.0, math.exp(2.0), 1.001),
        ("student", 0.4, 0.1, 5.0 * (3.0 + math.sqrt(8.0)) / (4.0 * 8.0), 1.2),
    ],
)
def test_known_constants_are_found(name, z, radius, wanted, loose):
    """The Student-t density's third derivative is largest at (sqrt 2 - 1) sqrt nu."""
    own = OWN[name]._replace(z=(z,), spread=(1.0,))
    if name == "student":
        own = own._replace(z=(0.5 - (math.sqrt(2.0) - 1.0) * 2.0,))
    example = own.examples[1]
    assert wanted * (1.0 - 1e-3) <= found_size(own, example, radius) <= loose * wanted


def test_kinks_and_ends_of_the_domain_have_no_bound():
    def of(function):
        return OWN["logistic"]._replace(of_numbers=function, z=(0.2,), spread=(0.1,))

    example = {"y": 1.0}
    kinks = [
        lambda z, row: jnp.abs(z[0]),
        lambda z, row: jnp.maximum(z[0], 0.0) ** 2,
        lambda z, row: jnp.where(z[0] > 0.1, z[0], 0.0),
        lambda z, row: jnp.log(z[0]),
        lambda z, row: jnp.sqrt(z[0]),
        lambda z, row: 1.0 / z[0],
        lambda z, row: jnp.floor(3.0 * z[0]) * 1.0,
        lambda z, row: special.gammaln(z[0]),
    ]
    for function in kinks:
        assert found_size(of(function), example) == math.inf
        assert math.isfinite(found_size(of(function), example, radius=0.5))
