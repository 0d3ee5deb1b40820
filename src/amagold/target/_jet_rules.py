"""What each operation of a program does to jets: the operations that log likelihoods are made of.

A rule is called with the space, the operation's parameters and its inputs, of which at least one is
a jet or a truth that depends on one; others are arrays.
"""

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array
from jax.core import Tracer

from amagold.target import _smooth_functions as curves
from amagold.target._intervals import EPSILON, Span, multiply, point, widened
from amagold.target._jets import (
    Jet,
    Space,
    compose,
    constant,
    minus,
    plus,
    tighter,
    times,
)


class NotCoveredError(ValueError):
    """What a program does that no rule speaks of, in words that follow "uses"."""


class Truth(NamedTuple):
    """Of a question whose answer may depend on where in the box one is."""

    can_be: Array
    can_fail: Array


Value = Any  # a jet, a truth that depends on one, or an array
Rule = Callable[..., Value]


def as_jet(space: Space, value: Value) -> Jet:
    return value if isinstance(value, Jet) else constant(space, value)


def as_truth(value: Value) -> Truth:
    return value if isinstance(value, Truth) else Truth(value, ~value)


def of_curve(curve: curves.Curve) -> Rule:
    return lambda space, params, x: compose(curve(x.value), x)


def of_probability(curve: curves.Curve, log: curves.Curve, *, is_odd: bool = False) -> Rule:
    """p(x) with p(-x) = 1 - p(x), whose logarithm is a curve of x, or the negative one of -x."""

    def rule(space: Space, params: Any, x: Jet) -> Jet:
        found, other = compose(curve(x.value), x), minus(x)
        logs = [compose(log(u.value), u) for u in (x, other)]
        found.logarithm, found.log_rest = map(minus, logs[::-1]) if is_odd else logs
        return found

    return rule


def add(space: Space, params: Any, left: Value, right: Value) -> Jet:
    found = plus(as_jet(space, left), as_jet(space, right))
    logs = [_logarithm_of(space, value) for value in (left, right)]
    if logs[0] is not None and logs[1] is not None:
        # log(exp(a) + exp(b))
        found.logarithm = log_add_exp(space, {}, logs[0], logs[1])
    return found


def subtract(space: Space, params: Any, left: Value, right: Value) -> Jet:
    found = plus(as_jet(space, left), minus(as_jet(space, right)))
    is_known = isinstance(right, Jet) and not isinstance(left, (Jet, Tracer))
    if is_known and right.log_rest is not None and np.all(np.asarray(left) == 1.0):
        found.logarithm, found.log_rest = right.log_rest, right.logarithm
    return found


def negative(space: Space, params: Any, x: Jet) -> Jet:
    found = minus(x)
    found.negative_of = x
    return found


def exponential(space: Space, params: Any, x: Jet) -> Jet:
    found = compose(curves.exponential(x.value), x)
    found.logarithm = x
    return found


def logarithm(space: Space, params: Any, x: Jet) -> Jet:
    found = compose(curves.logarithm(x.value), x)
    return found if x.logarithm is None else tighter(x.logarithm, found)


def log_one_plus(space: Space, params: Any, x: Jet) -> Jet:
    found = compose(curves.logarithm_of_one_plus(x.value), x)
    known = None if x.negative_of is None else x.negative_of.log_rest
    return found if known is None else tighter(known, found)


def product(space: Space, params: Any, left: Value, right: Value) -> Jet:
    found = times(as_jet(space, left), as_jet(space, right))
    logs = [_logarithm_of(space, value) for value in (left, right)]
    found.logarithm = None if logs[0] is None or logs[1] is None else plus(logs[0], logs[1])
    return found


def quotient(space: Space, params: Any, left: Value, right: Value) -> Jet:
    if isinstance(right, Jet):
        below = compose(curves.whole_powers(-1)(right.value), right)
        found = times(as_jet(space, left), below)
    else:
        factor = widened(1.0 / right, 1.0 / right)
        found = left.each(lambda part: multiply(part, factor))
    above, under = (_logarithm_of(space, value) for value in (left, right))
    found.logarithm = None if above is None or under is None else plus(above, minus(under))
    return found


def _logarithm_of(space: Space, value: Value) -> Jet | None:
    return value.logarithm if isinstance(value, Jet) else constant(space, jnp.log(value))


def square(space: Space, params: Any, x: Jet) -> Jet:
    return compose(curves.whole_powers(2)(x.value), x)


def integer_power(space: Space, params: Any, x: Jet) -> Jet:
    return compose(curves.whole_powers(params["y"])(x.value), x)


def general_power(space: Space, params: Any, base: Value, exponent: Value) -> Jet:
    is_new = isinstance(base, Jet) and base.logarithm is None
    if is_new and not isinstance(exponent, (Jet, Tracer)):
        numbers = np.unique(np.asarray(exponent))
        if numbers.size == 1:
            return compose(curves.real_powers(float(numbers[0]))(base.value), base)
    # b^e = exp(e log b)
    logs = logarithm(space, {}, as_jet(space, base))
    return exponential(space, {}, times(as_jet(space, exponent), logs))


def log_add_exp(space: Space, params: Any, left: Value, right: Value) -> Jet:
    """b + softplus(a - b)."""
    above = subtract(space, {}, left, right)
    return add(space, {}, right, compose(curves.softplus(above.value), above))


def log_sum_exp(axis: int, *, keeps: bool = False) -> Rule:
    """Over the first axis or the last one, one after the other."""

    def rule(space: Space, params: Any, x: Jet) -> Jet:
        count = x.shape[axis]
        each = [
            x.each(lambda part, k=k: Span(*(jnp.take(end, k, axis=axis) for end in part)))
            for k in range(count)
        ]
        found = reduce(lambda total, one: log_add_exp(space, params, total, one), each)
        if not keeps:
            return found
        return found.each(lambda part: Span(*(jnp.expand_dims(end, axis) for end in part)))

    return rule


def log_softmax(space: Space, params: Any, x: Jet) -> Jet:
    """Along the last axis."""
    return plus(x, minus(log_sum_exp(-1, keeps=True)(space, params, x)))


def log_beta(space: Space, params: Any, left: Value, right: Value) -> Jet:
    gammas = [
        of_curve(curves.log_gamma)(space, {}, as_jet(space, x))
        for x in (left, right, add(space, {}, left, right))
    ]
    return plus(plus(gammas[0], gammas[1]), minus(gammas[2]))


def rearranged(primitive: Any, num_data: int | None, *, adds: bool = False) -> Rule:
    """A linear map without negative weights, that is one of its lower ends and of its upper ends;
    the first `num_data` inputs are data, None for all of them, and the others say which.
    """

    def rule(space: Space, params: Any, *inputs: Value) -> Value:
        count = len(inputs) if num_data is None else num_data
        if any(isinstance(value, (Jet, Truth)) for value in inputs[count:]):
            raise NotCoveredError(f"`{primitive.name}` at places that depend on the predictors")
        if any(isinstance(value, Truth) for value in inputs[:count]):
            truths = [as_truth(value) for value in inputs[:count]]
            ends = (
                primitive.bind(*end, *inputs[count:], **params) for end in zip(*truths, strict=True)
            )
            return Truth(*ends)
        jets = [as_jet(space, value) for value in inputs[:count]]

        def apply(index: tuple[int, ...]) -> Span | list[Span]:
            parts = [jet.parts.get(index, point(jnp.zeros_like(jet.value.lo))) for jet in jets]
            if all(part.is_point for part in parts) and not adds:
                found = primitive.bind(*(part.lo for part in parts), *inputs[count:], **params)
                return [*map(point, found)] if primitive.multiple_results else point(found)
            lows, highs = (
                primitive.bind(*(part[end] for part in parts), *inputs[count:], **params)
                for end in (0, 1)
            )
            if primitive.multiple_results:
                return [Span(lo, hi) for lo, hi in zip(lows, highs, strict=True)]
            if not adds:
                return Span(lows, highs)
            # a sum of n numbers is off by at most n units of the sum of their sizes
            size = primitive.bind(parts[0].largest, **params)
            slack = 2.0 * EPSILON * np.prod(jets[0].shape) * size
            return Span(lows - slack, highs + slack)

        indices = dict.fromkeys(index for jet in jets for index in jet.parts)
        found: dict[Any, Any] = {index: apply(index) for index in indices}
        if not primitive.multiple_results:
            moved = Jet(space, found)
            if len(jets) == 1 and not adds:
                # logarithms move with their numbers
                for name in ("logarithm", "log_rest", "negative_of"):
                    known = getattr(jets[0], name)
                    if known is not None:
                        setattr(moved, name, rule(space, params, known, *inputs[1:]))
            return moved
        return [
            Jet(space, {index: parts[place] for index, parts in found.items()})
            for place in range(len(found[()]))
        ]

    return rule


def matrix_product(space: Space, params: Any, left: Value, right: Value) -> Jet:
    """With numbers: those above zero and those below apart."""
    primitive = jax.lax.dot_general_p
    if isinstance(left, Jet) and isinstance(right, Jet):
        raise NotCoveredError("a matrix product of two arrays that depend on the predictors")
    jet, numbers = (left, right) if isinstance(left, Jet) else (right, left)
    numbers = jnp.asarray(numbers)

    def dot(values: Array, weights: Array) -> Array:
        pair = (values, weights) if jet is left else (weights, values)
        return primitive.bind(*pair, **params)

    up, down = jnp.maximum(numbers, 0.0), jnp.minimum(numbers, 0.0)

    def apply(part: Span) -> Span:
        slack = 2.0 * EPSILON * jnp.size(part.lo) * dot(part.largest, jnp.abs(numbers))
        lo = dot(part.lo, up) + dot(part.hi, down)
        hi = dot(part.hi, up) + dot(part.lo, down)
        return Span(lo - slack, hi + slack)

    return jet.each(apply)
