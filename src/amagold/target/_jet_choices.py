"""Questions and choices in programs on jets: comparisons, and functions that choose by them.

Where the answer is the same all over the box, the choice is that of one case. Where it is not, the
function may have a kink or a jump there: the value is known, and its derivatives are not.
"""

from typing import Any

import jax
import jax.numpy as jnp
from jax import Array

from amagold.target import _smooth_functions as curves
from amagold.target._intervals import Span, multiply, point, range_of
from amagold.target._jet_rules import NotCoveredError, Rule, Truth, Value, as_jet, as_truth
from amagold.target._jets import (
    Jet,
    Space,
    choose,
    compose,
    known_where,
    minus,
    plus,
    select,
    unknown,
)


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
    either.parts[()] = Span(*map(jnp.maximum, left.value, right.value))
    found = known_where(is_left | is_right, either)
    _keep_logarithms(found, (left, is_left), (right, is_right))
    return found


def _keep_logarithms(found: Jet, *cases: tuple[Jet, Array]) -> None:
    """What is known of one of two, where it is that one; elsewhere nothing."""
    for name in ("logarithm", "log_rest"):
        for case, is_it in cases:
            known = getattr(case, name)
            if known is not None:
                whole = Jet(known.space, dict(known.parts))
                whole.parts[()] = choose(is_it, {(): known.value}, None)[()]
                setattr(found, name, known_where(is_it, whole))


def smaller(space: Space, params: Any, left: Value, right: Value) -> Jet:
    left, right = as_jet(space, left), as_jet(space, right)
    is_left = left.value.hi <= right.value.lo
    is_right = right.value.hi <= left.value.lo
    either = select(is_left, left, right)
    either.parts[()] = Span(*map(jnp.minimum, left.value, right.value))
    found = known_where(is_left | is_right, either)
    _keep_logarithms(found, (left, is_left), (right, is_right))
    return found


def log_between(space: Space, params: Any, low: Value, width: Value) -> Jet:
    """log(Phi(low + width) - Phi(low)), the same mirrored: by the form that subtracts less."""
    low, width = as_jet(space, low), as_jet(space, width)
    high = plus(low, width)
    is_above = low.value.lo + high.value.lo > 0.0
    left, right = select(is_above, minus(high), low), select(is_above, minus(low), high)
    below, above = (curves.log_normal_cdf(end.value) for end in (left, right))
    gap = plus(compose(below, left), minus(compose(above, right)))
    # the slope of log Phi falls, so that the gap is at least the width times that at the right
    slope = above[1]
    assert slope is not None
    least = multiply(point(width.value.lo), point(slope.lo))
    gap.parts[()] = Span(gap.value.lo, jnp.minimum(gap.value.hi, -least.lo))
    return plus(compose(above, right), compose(curves.logarithm_of_rest(gap.value), gap))


def clamp(space: Space, params: Any, low: Value, x: Value, high: Value) -> Jet:
    return smaller(space, {}, larger(space, {}, low, x), high)


def staircase(primitive: Any) -> Rule:
    """A function that is constant between its jumps and never falls."""

    def rule(space: Space, params: Any, x: Jet) -> Jet:
        ends = Span(*(primitive.bind(end, **params) for end in x.value))
        return known_where(ends.lo == ends.hi, Jet(space, {(): ends}))

    return rule


def largest(space: Space, params: Any, x: Jet) -> Jet:
    """Of several; which of them it is, is not followed."""
    return unknown(space, Span(*(jnp.max(end, axis=params["axes"]) for end in x.value)))


def stop_gradient(space: Space, params: Any, x: Jet) -> Jet:
    return x.constant()


def convert(space: Space, params: Any, x: Value) -> Value:
    if not jnp.issubdtype(params["new_dtype"], jnp.floating):
        raise NotCoveredError("a conversion to whole numbers")
    if isinstance(x, Truth):
        ends = Span((~x.can_fail).astype(jnp.float32), x.can_be.astype(jnp.float32))
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


def one_alone(space: Space, params: Any, left: Value, right: Value) -> Truth:
    one, other = as_truth(left), as_truth(right)
    return Truth(
        (one.can_be & other.can_fail) | (one.can_fail & other.can_be),
        (one.can_be & other.can_be) | (one.can_fail & other.can_fail),
    )


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
        chosen.parts[()] = Span(
            *(jnp.where(is_open, end, own) for end, own in zip(ends, chosen.value, strict=True))
        )
        return known_where(~is_open, chosen)
    found = jets[0]
    for number, case in enumerate(jets[1:], start=1):
        found = select(jnp.asarray(which == number), case, found)
    return found
