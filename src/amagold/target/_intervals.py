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


class Interval(NamedTuple):
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


def point(value: Array) -> Interval:
    return Interval(value, value)


def widened(lo: Array, hi: Array, times: float = 1.0) -> Interval:
    """By the rounding of one operation, or that of so many."""
    share = times * EPSILON
    return Interval(lo - share * jnp.abs(lo) - TINY, hi + share * jnp.abs(hi) + TINY)


def negative(interval: Interval) -> Interval:
    if interval.is_point:
        return point(-interval.lo)
    return Interval(-interval.hi, -interval.lo)


def add(left: Interval, right: Interval) -> Interval:
    return widened(left.lo + right.lo, left.hi + right.hi)


def multiply(left: Interval, right: Interval) -> Interval:
    """NaN wherever a bound is infinite and a factor may be zero: nothing is known then."""
    if right.is_point:
        left, right = right, left
    if left.is_point:
        ends = [left.lo * right.lo, left.lo * right.hi]
    else:
        ends = [one * other for one in left for other in right]
    return widened(reduce(jnp.minimum, ends), reduce(jnp.maximum, ends))


def scaled(interval: Interval, factor: float) -> Interval:
    """Times a number above zero."""
    return widened(factor * interval.lo, factor * interval.hi)


def range_of(
    function: Callable[[Array], Array],
    over: Interval,
    turns: Sequence[float] = (),
    times: float = OF_FUNCTIONS,
) -> Interval:
    """Of a function that is monotone between its turning points: it is largest and smallest at the
    ends, or at those of its turns that lie between them.
    """
    places = [over.lo, over.hi, *(jnp.clip(turn, over.lo, over.hi) for turn in turns)]
    values = [function(place) for place in places]
    return widened(reduce(jnp.minimum, values), reduce(jnp.maximum, values), times)


def power(base: Interval, exponent: int) -> Interval:
    """base^exponent for whole exponents; unknown where the base may be zero and is divided by."""
    if exponent == 1:
        return base
    if exponent < 0:
        is_apart = (base.lo > 0) | (base.hi < 0)
        base = Interval(*(jnp.where(is_apart, end, jnp.nan) for end in base))
    turns = (0.0,) if exponent > 0 and exponent % 2 == 0 else ()
    return range_of(lambda x: x**exponent, base, turns, 4.0 + 2.0 * abs(exponent))


def real_power(base: Interval, exponent: float) -> Interval:
    """base^exponent; unknown unless the base is above zero."""
    base = Interval(*(jnp.where(base.lo > 0, end, jnp.nan) for end in base))
    # log base is rounded too, and the exponent multiplies it
    logs = jnp.abs(jnp.log(base.lo)) + jnp.abs(jnp.log(base.hi))
    slack = EPSILON * (OF_FUNCTIONS + 4.0 * abs(exponent) * (1.0 + logs))
    ends = [end**exponent for end in base]
    lo, hi = jnp.minimum(*ends), jnp.maximum(*ends)
    return Interval(lo - slack * lo - TINY, hi + slack * hi + TINY)
