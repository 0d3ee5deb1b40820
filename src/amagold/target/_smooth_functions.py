"""Functions of one number that log likelihoods are made of: the ranges of the function and of its
first three derivatives over an interval.

A range is that of a formula that rounds well, at the ends and at the points where it turns: the
zeros of the next derivative, which are known.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array
from jax.scipy.special import digamma, erf, erfc, gammaln, log_ndtr, ndtr, polygamma

from amagold.target import _normal_tail as normal_tail
from amagold.target._intervals import (
    EPSILON,
    OF_FUNCTIONS,
    Span,
    add,
    negative,
    point,
    power,
    range_of,
    real_power,
    scaled,
)

Ranges = Sequence[Span | None]  # of the function and its derivatives; None is zero
Curve = Callable[[Span], Ranges]

LOOSE = 2.0**7  # for formulas whose last digits are lost
ROOT_TWO_PI = math.sqrt(2.0 * math.pi)
LEAST_GAMMA = 1.4616321  # where log Gamma turns
LOGIT_THIRD, LOGIT_FOURTH = math.log(2.0 + math.sqrt(3.0)), math.log(5.0 + math.sqrt(24.0))
MILLS_THIRD = 1.0023694  # where the third derivative of log Phi is largest


def _ranges(
    over: Span,
    *formulas: tuple[Callable[[Array], Array], Sequence[float]],
    slack: float = OF_FUNCTIONS,
) -> list[Span]:
    return [range_of(formula, over, turns, slack) for formula, turns in formulas]


def _above(over: Span, limit: float) -> Span:
    """The interval, unknown unless all of it lies above the limit."""
    return Span(*(jnp.where(over.lo > limit, end, jnp.nan) for end in over))


def exponential(x: Span) -> list[Span]:
    return [range_of(jnp.exp, x)] * 4


def exponential_less_one(x: Span) -> list[Span]:
    return [range_of(jnp.expm1, x), *exponential(x)[1:]]


def logarithm(x: Span) -> list[Span]:
    x = _above(x, 0.0)
    return [
        range_of(jnp.log, x),
        power(x, -1),
        negative(power(x, -2)),
        scaled(power(x, -3), 2.0),
    ]


def logarithm_of_one_plus(x: Span) -> list[Span]:
    x = _above(x, -1.0)
    return [range_of(jnp.log1p, x), *logarithm(add(x, point(jnp.float32(1.0))))[1:]]


def logarithm_of_rest(x: Span) -> list[Span]:
    """log(1 - exp(x)), of x below zero: with p = 1 / (exp(-x) - 1) its slope is -p, and that of p
    is p (1 + p).
    """

    def odds(t: Array) -> Array:
        return 1.0 / jnp.expm1(-t)

    value, *slopes = _ranges(
        Span(*(jnp.where(x.hi < 0.0, end, jnp.nan) for end in x)),
        (lambda t: jnp.log(-jnp.expm1(t)), ()),
        (lambda t: -odds(t), ()),
        (lambda t: -odds(t) * (1.0 + odds(t)), ()),
        (lambda t: -odds(t) * (1.0 + odds(t)) * (1.0 + 2.0 * odds(t)), ()),
        slack=LOOSE,
    )
    # far below zero the value is tiny, and rounded as one is
    return [Span(value.lo - 1e-6, value.hi + 1e-6), *slopes]


def softplus(x: Span) -> list[Span]:
    """log(1 + exp(x))."""
    return _ranges(
        x,
        (jax.nn.softplus, ()),
        (jax.nn.sigmoid, ()),
        (_logistic_slope, (0.0,)),
        (_logistic_bend, (-LOGIT_THIRD, LOGIT_THIRD)),
    )


def logistic(x: Span) -> list[Span]:
    return [*softplus(x)[1:], _logistic_third(x)]


def tanh(x: Span) -> list[Span]:
    """2 logistic(2 x) - 1."""
    doubled = Span(2.0 * x.lo, 2.0 * x.hi)
    inner = logistic(doubled)
    return [
        range_of(jnp.tanh, x),
        *(scaled(part, 2.0 ** (order + 2)) for order, part in enumerate(inner[1:])),
    ]


def error_function(x: Span) -> list[Span]:
    return [range_of(erf, x), *_of_bell(x)]


def other_error_function(x: Span) -> list[Span]:
    return [range_of(erfc, x), *map(negative, _of_bell(x))]


def normal_cdf(x: Span) -> list[Span]:
    def density(t: Array) -> Array:
        return jnp.exp(-0.5 * t * t) / ROOT_TWO_PI

    root = math.sqrt(3.0)
    return _ranges(
        x,
        (ndtr, ()),
        (density, (0.0,)),
        (lambda t: -t * density(t), (-1.0, 1.0)),
        (lambda t: (t * t - 1.0) * density(t), (-root, 0.0, root)),
        slack=LOOSE,
    )


def log_normal_cdf(x: Span) -> list[Span]:
    found = _ranges(
        x,
        (log_ndtr, ()),
        (normal_tail.slope_of, ()),
        (normal_tail.curvature, ()),
        (normal_tail.third, (MILLS_THIRD,)),
        slack=LOOSE,
    )
    # by cancellation JAX's value loses digits far above zero, and the third derivative near -3
    value, *middle, third = found
    return [
        Span(value.lo - 1e-6, value.hi + 1e-6),
        *middle,
        Span(third.lo - 1e-4, third.hi + 1e-4),
    ]


def log_gamma(x: Span) -> list[Span]:
    x = _above(x, 0.0)
    return [range_of(gammaln, x, (LEAST_GAMMA,), LOOSE), *_of_gamma(x, 3)]


def log_gamma_slope(x: Span) -> list[Span]:
    return _of_gamma(_above(x, 0.0), 4)


def square_root(x: Span) -> Ranges:
    return real_powers(0.5)(x)


def one_over_square_root(x: Span) -> Ranges:
    return real_powers(-0.5)(x)


def real_powers(exponent: float) -> Curve:
    """x^p for a number p, of x above zero."""
    return lambda x: _of_power(x, exponent, real_power)


def whole_powers(exponent: int) -> Curve:
    return lambda x: _of_power(x, exponent, power)


def _of_power(x: Span, exponent: float, raised: Callable[[Span, Any], Span]) -> Ranges:
    """p (p - 1) ... (p - k + 1) x^(p - k)."""
    found: list[Span | None] = []
    factor = 1.0
    for order in range(4):
        if factor == 0.0:
            found.append(None)
            continue
        left = exponent - order
        part = point(jnp.ones_like(x.lo)) if left == 0 else raised(x, left)
        part = part if factor == 1.0 else scaled(part, abs(factor))
        found.append(part if factor > 0 else negative(part))
        factor *= left
    return found


def _logistic_slope(x: Array) -> Array:
    return jax.nn.sigmoid(x) * jax.nn.sigmoid(-x)


def _logistic_bend(x: Array) -> Array:
    # 1 - 2 s = -tanh(x / 2)
    return -_logistic_slope(x) * jnp.tanh(0.5 * x)


def _logistic_third(x: Span) -> Span:
    """s (1 - s) (1 - 6 s (1 - s))."""

    def formula(t: Array) -> Array:
        slope = _logistic_slope(t)
        return slope * (1.0 - 6.0 * slope)

    found = range_of(formula, x, (-LOGIT_FOURTH, 0.0, LOGIT_FOURTH), LOOSE)
    return Span(found.lo - EPSILON, found.hi + EPSILON)


def _of_bell(x: Span) -> list[Span]:
    """Three derivatives of erf."""

    def bell(t: Array) -> Array:
        return (2.0 / math.sqrt(math.pi)) * jnp.exp(-t * t)

    half, most = math.sqrt(0.5), math.sqrt(1.5)
    return _ranges(
        x,
        (bell, (0.0,)),
        (lambda t: -2.0 * t * bell(t), (-half, half)),
        (lambda t: (4.0 * t * t - 2.0) * bell(t), (-most, 0.0, most)),
        slack=LOOSE,
    )


def _of_gamma(x: Span, count: int) -> list[Span]:
    """The derivatives of log Gamma from the first, all of them monotone."""
    found = [range_of(digamma, x, (), LOOSE)]
    for order in range(1, count):
        sign = 1.0 if order % 2 else -1.0
        found.append(
            range_of(lambda t, k=order, s=sign: s * jnp.abs(polygamma(k, t)), x, (), LOOSE)
        )
    # near its zero digamma is right to about a float32's unit
    first = found[0]
    return [Span(first.lo - 1e-5, first.hi + 1e-5), *found[1:]]
