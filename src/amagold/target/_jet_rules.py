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

from amagold.target import _curves as curves
from amagold.target._intervals import EPSILON, Interval, multiply, point, range_of, widened
from amagold.target._jets import (
    Jet,
    Space,
    compose,
    constant,
    known_where,
    minus,
    plus,
    select,
    times,
    unknown,
)


class Truth(NamedTuple):
    """Of a question whose answer may depend on where in the box one is."""

    can_be: Array
    can_fail: Array


Value = Jet | Truth | Any
Rule = Callable[..., Value]


def as_jet(space: Space, value: Value) -> Jet:
    return value if isinstance(value, Jet) else constant(space, value)


def as_truth(value: Value) -> Truth:
    return value if isinstance(value, Truth) else Truth(value, ~value)


def of_curve(curve: curves.Curve) -> Rule:
    return lambda space, params, x: compose(curve(x.value), x)


def add(space: Space, params: Any, left: Value, right: Value) -> Jet:
    return plus(as_jet(space, left), as_jet(space, right))


def subtract(space: Space, params: Any, left: Value, right: Value) -> Jet:
    return plus(as_jet(space, left), minus(as_jet(space, right)))


def exponential(space: Space, params: Any, x: Jet) -> Jet:
    found = compose(curves.exponential(x.value), x)
    found.logarithm = x
    return found


def logarithm(space: Space, params: Any, x: Jet) -> Jet:
    return compose(curves.logarithm(x.value), x) if x.logarithm is None else x.logarithm


def product(space: Space, params: Any, left: Value, right: Value) -> Jet:
    found = times(as_jet(space, left), as_jet(space, right))
    logs = [_logarithm_of(space, value) for value in (left, right)]
    found.logarithm = None if None in logs else plus(*logs)
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
    if is_new and not isinstance(exponent, (Jet, jax.core.Tracer)):
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


def log_sum_exp(space: Space, params: Any, x: Jet) -> Jet:
    """Over the first axis, one after the other."""
    each = [x.each(lambda part, k=k: Interval(part.lo[k], part.hi[k])) for k in range(x.shape[0])]
    return reduce(lambda total, one: log_add_exp(space, params, total, one), each)


def log_beta(space: Space, params: Any, left: Value, right: Value) -> Jet:
    gammas = [
        of_curve(curves.log_gamma)(space, {}, as_jet(space, x))
        for x in (left, right, add(space, {}, left, right))
    ]
    return plus(plus(gammas[0], gammas[1]), minus(gammas[2]))


def absolute(space: Space, params: Any, x: Jet) -> Jet:
    is_above, is_below = x.value.lo >= 0, x.value.hi <= 0
    either = select(is_above, x, minus(x))
    either.parts[()] = range_of(jnp.abs, x.value, (0.0,), 0.0)
    return known_where(is_above | is_below, either)


def larger(space: Space, params: Any, left: Value, right: Value) -> Jet:
    """One of both where it is nowhere below the other; else the value alone is known."""
    left, right = as_jet(space, left), as_jet(space, right)
    is_left = left.value.lo >= right.value.hi
    is_right = right.value.lo >= left.value.hi
    either = select(is_left, left, right)
    either.parts[()] = Interval(*map(jnp.maximum, left.value, right.value))
    return known_where(is_left | is_right, either)


def smaller(space: Space, params: Any, left: Value, right: Value) -> Jet:
    return minus(larger(space, params, minus(as_jet(space, left)), minus(as_jet(space, right))))


def clamp(space: Space, params: Any, low: Value, x: Value, high: Value) -> Jet:
    return smaller(space, {}, larger(space, {}, low, x), high)


def staircase(primitive: Any) -> Rule:
    """A function that is constant between its jumps and never falls."""

    def rule(space: Space, params: Any, x: Jet) -> Jet:
        ends = Interval(*(primitive.bind(end, **params) for end in x.value))
        return known_where(ends.lo == ends.hi, Jet(space, {(): ends}))

    return rule


def largest(space: Space, params: Any, x: Jet) -> Jet:
    """Of several; which of them it is, is not followed."""
    return unknown(space, Interval(*(jnp.max(end, axis=params["axes"]) for end in x.value)))


def stop_gradient(space: Space, params: Any, x: Jet) -> Jet:
    return x.constant()


def convert(space: Space, params: Any, x: Value) -> Value:
    if not jnp.issubdtype(params["new_dtype"], jnp.floating):
        raise NotImplementedError("a conversion to whole numbers")
    if isinstance(x, Truth):
        ends = Interval((~x.can_fail).astype(jnp.float32), x.can_be.astype(jnp.float32))
        return known_where(ends.lo == ends.hi, Jet(space, {(): ends}))
    return x


def below(space: Space, params: Any, left: Value, right: Value) -> Truth:
    one, other = as_jet(space, left).value, as_jet(space, right).value
    return Truth(~(one.lo >= other.hi), ~(one.hi < other.lo))


def not_above(space: Space, params: Any, left: Value, right: Value) -> Truth:
    one, other = as_jet(space, left).value, as_jet(space, right).value
    return Truth(~(one.lo > other.hi), ~(one.hi <= other.lo))


def equal(space: Space, params: Any, left: Value, right: Value) -> Truth:
    one, other = as_jet(space, left).value, as_jet(space, right).value
    is_same = (one.lo == one.hi) & (one.lo == other.lo) & (other.lo == other.hi)
    return Truth(~((one.hi < other.lo) | (other.hi < one.lo)), ~is_same)


def negation(space: Space, params: Any, x: Truth) -> Truth:
    return Truth(x.can_fail, x.can_be)


def both(space: Space, params: Any, left: Value, right: Value) -> Truth:
    one, other = as_truth(left), as_truth(right)
    return Truth(one.can_be & other.can_be, one.can_fail | other.can_fail)


def either(space: Space, params: Any, left: Value, right: Value) -> Truth:
    one, other = as_truth(left), as_truth(right)
    return Truth(one.can_be | other.can_be, one.can_fail & other.can_fail)


def is_finite(space: Space, params: Any, x: Jet) -> Truth:
    known = jnp.isfinite(x.value.lo) & jnp.isfinite(x.value.hi)
    return Truth(jnp.ones_like(known), ~known)


def select_one(space: Space, params: Any, which: Value, *cases: Value) -> Value:
    if not isinstance(which, (Truth, Jet)) and not any(isinstance(case, Jet) for case in cases):
        # of truths alone
        truths = [as_truth(case) for case in cases]
        return Truth(
            jax.lax.select_n(which, *(t.can_be for t in truths)),
            jax.lax.select_n(which, *(t.can_fail for t in truths)),
        )
    jets = [as_jet(space, case) for case in cases]
    if isinstance(which, Truth):
        no, yes = jets
        chosen = select(which.can_be & ~which.can_fail, yes, no)
        ends = (jnp.minimum(yes.value.lo, no.value.lo), jnp.maximum(yes.value.hi, no.value.hi))
        is_open = which.can_be & which.can_fail
        chosen.parts[()] = Interval(
            *(jnp.where(is_open, end, own) for end, own in zip(ends, chosen.value, strict=True))
        )
        return known_where(~is_open, chosen)
    found = jets[0]
    for number, case in enumerate(jets[1:], start=1):
        found = select(jnp.equal(which, number), case, found)
    return found


def rearranged(primitive: Any, num_data: int | None, *, adds: bool = False) -> Rule:
    """A linear map without negative weights, that is one of its lower ends and of its upper ends;
    the first `num_data` inputs are data, None for all of them, and the others say which.
    """

    def rule(space: Space, params: Any, *inputs: Value) -> Value:
        count = len(inputs) if num_data is None else num_data
        if any(isinstance(value, (Jet, Truth)) for value in inputs[count:]):
            raise NotImplementedError(f"`{primitive.name}` at places that depend on the predictors")
        jets = [as_jet(space, value) for value in inputs[:count]]

        def apply(index: tuple[int, ...]) -> Interval | list[Interval]:
            parts = [
                jet.parts.get(index, point(jnp.zeros_like(jet.value.lo))) for jet in jets
            ]
            if all(part.is_point for part in parts) and not adds:
                found = primitive.bind(*(part.lo for part in parts), *inputs[count:], **params)
                return [*map(point, found)] if primitive.multiple_results else point(found)
            lows, highs = (
                primitive.bind(*(part[end] for part in parts), *inputs[count:], **params)
                for end in (0, 1)
            )
            if primitive.multiple_results:
                return [Interval(lo, hi) for lo, hi in zip(lows, highs, strict=True)]
            if not adds:
                return Interval(lows, highs)
            # a sum of n numbers is off by at most n units of the sum of their sizes
            size = primitive.bind(parts[0].largest, **params)
            slack = 2.0 * EPSILON * np.prod(jets[0].shape) * size
            return Interval(lows - slack, highs + slack)

        indices = dict.fromkeys(index for jet in jets for index in jet.parts)
        found: dict[Any, Any] = {index: apply(index) for index in indices}
        if not primitive.multiple_results:
            return Jet(space, found)
        return [
            Jet(space, {index: parts[place] for index, parts in found.items()})
            for place in range(len(found[()]))
        ]

    return rule


def matrix_product(space: Space, params: Any, left: Value, right: Value) -> Jet:
    """With numbers: those above zero and those below apart."""
    primitive = jax.lax.dot_general_p
    if isinstance(left, Jet) and isinstance(right, Jet):
        raise NotImplementedError("a matrix product of two arrays that depend on the predictors")
    jet, numbers = (left, right) if isinstance(left, Jet) else (right, left)
    numbers = jnp.asarray(numbers)

    def dot(values: Array, weights: Array) -> Array:
        pair = (values, weights) if jet is left else (weights, values)
        return primitive.bind(*pair, **params)

    up, down = jnp.maximum(numbers, 0.0), jnp.minimum(numbers, 0.0)

    def apply(part: Interval) -> Interval:
        slack = 2.0 * EPSILON * jnp.size(part.lo) * dot(part.largest, jnp.abs(numbers))
        lo = dot(part.lo, up) + dot(part.hi, down)
        hi = dot(part.hi, up) + dot(part.lo, down)
        return Interval(lo - slack, hi + slack)

    return jet.each(apply)
