"""Intervals that hold what exact arithmetic would give: every result is widened by more than
float32 can have rounded it.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jax import Array

EPSILON = float(np.finfo(np.float32).eps)
TINY = float(np.finfo(np.float32).tiny)  # smaller numbers may have been taken for zero
OF_FUNCTIONS = 16.0  # times: what a compiler's exp, log or erf may be off by


class Span(NamedTuple):
    """All numbers from lo to hi, element by element. Where lo is NaN so is hi: nothing is known.
    A number that is known exactly has one array for both.
    """

    lo: Array
    hi: Array

    @property
    def is_point(self) -> bool:
        return self.lo is self.hi

    @property
    def largest(self) -> Array:
        """Of the absolute values."""
        return jnp.maximum(jnp.abs(self.lo), jnp.abs(self.hi))


def point(value: Array) -> Span:
    return Span(value, value)


def widened(lo: Array, hi: Array, times: float = 1.0) -> Span:
    """By the rounding of one operation, or that of so many."""
    share = times * EPSILON
    return Span(lo - share * jnp.abs(lo) - TINY, hi + share * jnp.abs(hi) + TINY)


def negative(span: Span) -> Span:
    if span.is_point:
        return point(-span.lo)
    return Span(-span.hi, -span.lo)


def add(left: Span, right: Span) -> Span:
    return widened(left.lo + right.lo, left.hi + right.hi)


def multiply(left: Span, right: Span) -> Span:
    """NaN wherever a bound is infinite and a factor may be zero: nothing is known then."""
    if right.is_point:
        left, right = right, left
    if left.is_point:
        ends = [left.lo * right.lo, left.lo * right.hi]
    else:
        ends = [one * other for one in left for other in right]
    return widened(reduce(jnp.minimum, ends), reduce(jnp.maximum, ends))


def scaled(span: Span, factor: float) -> Span:
    """Times a number above zero."""
    return widened(factor * span.lo, factor * span.hi)


def range_of(
    function: Callable[[Array], Array],
    over: Span,
    turns: Sequence[float] = (),
    times: float = OF_FUNCTIONS,
) -> Span:
    """Of a function that is monotone between its turning points: it is largest and smallest at the
    ends, or at those of its turns that lie between them.
    """
    places = [over.lo, over.hi, *(jnp.clip(turn, over.lo, over.hi) for turn in turns)]
    values = [function(place) for place in places]
    return widened(reduce(jnp.minimum, values), reduce(jnp.maximum, values), times)


def power(base: Span, exponent: int) -> Span:
    """base^exponent for whole exponents; unknown where the base may be zero and is divided by."""
    if exponent == 1:
        return base
    if exponent < 0:
        is_apart = (base.lo > 0) | (base.hi < 0)
        base = Span(*(jnp.where(is_apart, end, jnp.nan) for end in base))
    turns = (0.0,) if exponent > 0 and exponent % 2 == 0 else ()
    return range_of(lambda x: x**exponent, base, turns, 4.0 + 2.0 * abs(exponent))


def real_power(base: Span, exponent: float) -> Span:
    """base^exponent; unknown unless the base is above zero."""
    base = Span(*(jnp.where(base.lo > 0, end, jnp.nan) for end in base))
    # log base is rounded too, and the exponent multiplies it
    logs = jnp.abs(jnp.log(base.lo)) + jnp.abs(jnp.log(base.hi))
    slack = EPSILON * (OF_FUNCTIONS + 4.0 * abs(exponent) * (1.0 + logs))
    ends = [end**exponent for end in base]
    lo, hi = jnp.minimum(*ends), jnp.maximum(*ends)
    return Span(lo - slack * lo - TINY, hi + slack * hi + TINY)
