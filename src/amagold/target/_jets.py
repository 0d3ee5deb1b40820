"""Values with their derivatives, all of them intervals: jets.

A jet of u over a box of w holds u[()] = the range of u, u[i] = that of du/dw_i, u[i, j] and
u[i, j, k]; what is missing is zero. For products and compositions, with I the places of an index,

    (u v)[I]  = sum over parts A of I of      u[A] v[I without A]
    g(u)[I]   = sum over partitions of I of   g^(number of blocks)(u) times the u[block].
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from itertools import combinations, combinations_with_replacement
from typing import NamedTuple

import jax.numpy as jnp
from jax import Array

from amagold.target._intervals import Span, add, multiply, negative, point, power

Index = tuple[int, ...]

# of the places of an index with one, two or three of them
PARTITIONS: dict[int, list[list[Index]]] = {
    1: [[(0,)]],
    2: [[(0, 1)], [(0,), (1,)]],
    3: [
        [(0, 1, 2)],
        [(0, 1), (2,)],
        [(0, 2), (1,)],
        [(1, 2), (0,)],
        [(0,), (1,), (2,)],
    ],
}


class Space(NamedTuple):
    """How many variables there are, and how many derivatives are wanted."""

    num_variables: int
    order: int

    def indices(self) -> list[Index]:
        """Of all derivatives, sorted as those of a jet are."""
        places = range(self.num_variables)
        return [
            index
            for length in range(1, self.order + 1)
            for index in combinations_with_replacement(places, length)
        ]


class Jet:
    """A value with its derivatives, and its logarithm where that is known from before: log(exp(u))
    is u, of which intervals would know less. So is log(1 - p) of a probability p, and of -p what it
    is the negative of.
    """

    def __init__(
        self, space: Space, parts: dict[Index, Span], logarithm: "Jet | None" = None
    ) -> None:
        self.space = space
        self.parts = parts
        self.logarithm = logarithm
        self.log_rest: Jet | None = None
        self.negative_of: Jet | None = None

    @property
    def value(self) -> Span:
        return self.parts[()]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.value.lo.shape

    def each(self, change: Callable[[Span], Span]) -> "Jet":
        """The jet with every part changed alike, as by a linear map."""
        return Jet(self.space, {index: change(part) for index, part in self.parts.items()})

    def constant(self) -> "Jet":
        """The same value, taken for one that does not vary."""
        return Jet(self.space, {(): self.value})


def constant(space: Space, value: Array) -> Jet:
    return Jet(space, {(): point(jnp.asarray(value))})


def unknown(space: Space, value: Span) -> Jet:
    """A value of whose derivatives nothing is known."""
    nothing = jnp.full_like(value.lo, jnp.nan)
    return Jet(space, {(): value} | {index: point(nothing) for index in space.indices()})


def known_where(flag: Array, jet: Jet) -> Jet:
    """The jet, and where the flag is False nothing of its derivatives."""
    parts = {index: jet.parts.get(index, zero_like(jet)) for index in jet.space.indices()}
    return Jet(jet.space, {(): jet.value} | choose(flag, parts, None))


def choose(flag: Array, yes: dict[Index, Span], no: dict[Index, Span] | None) -> dict[Index, Span]:
    """Element by element; None is unknown."""
    return {
        index: Span(
            jnp.where(flag, part.lo, jnp.nan if no is None else no[index].lo),
            jnp.where(flag, part.hi, jnp.nan if no is None else no[index].hi),
        )
        for index, part in yes.items()
    }


def select(flag: Array, yes: Jet, no: Jet) -> Jet:
    """yes where the flag is True, element by element."""
    both = dict.fromkeys([*yes.parts, *no.parts])
    full = [{index: jet.parts.get(index, zero_like(jet)) for index in both} for jet in (yes, no)]
    return Jet(yes.space, choose(flag, *full))


def zero_like(jet: Jet) -> Span:
    return point(jnp.zeros(jet.shape, jet.value.lo.dtype))


def tighter(one: Jet, other: Jet) -> Jet:
    """Of two jets of the same function: what both allow, or the one that is known."""
    parts = {}
    for index in dict.fromkeys([*one.parts, *other.parts]):
        spans = [jet.parts.get(index, zero_like(jet)) for jet in (one, other)]
        parts[index] = Span(jnp.fmax(spans[0].lo, spans[1].lo), jnp.fmin(spans[0].hi, spans[1].hi))
    return Jet(one.space, parts, one.logarithm)


def plus(left: Jet, right: Jet) -> Jet:
    # both have all axes, where a part is one of them alone
    shape = jnp.broadcast_shapes(left.shape, right.shape)
    both = dict.fromkeys([*left.parts, *right.parts])
    return Jet(
        left.space,
        {
            index: _broadcast(
                _total(jet.parts[index] for jet in (left, right) if index in jet.parts), shape
            )
            for index in both
        },
    )


def minus(jet: Jet) -> Jet:
    return jet.each(negative)


def times(left: Jet, right: Jet) -> Jet:
    space = left.space
    parts: dict[Index, Span] = {(): multiply(left.value, right.value)}
    for index in space.indices():
        terms = []
        for chosen in _subsets(len(index)):
            one = tuple(index[place] for place in chosen)
            other = tuple(index[place] for place in range(len(index)) if place not in chosen)
            if one in left.parts and other in right.parts:
                terms.append(multiply(left.parts[one], right.parts[other]))
        if terms:
            parts[index] = _total(terms)
    return Jet(space, parts)


def compose(derivatives: Sequence[Span | None], inner: Jet) -> Jet:
    """g(u), from the ranges of g and its derivatives over the range of u; None is zero."""
    assert derivatives[0] is not None
    space = inner.space
    parts: dict[Index, Span] = {(): derivatives[0]}
    for index in space.indices():
        terms = []
        for partition in PARTITIONS[len(index)]:
            blocks = [tuple(index[place] for place in block) for block in partition]
            outer = derivatives[len(blocks)]
            if outer is not None and all(block in inner.parts for block in blocks):
                # equal blocks are one number, so that a square is never below zero
                factors = [
                    power(inner.parts[block], count) for block, count in Counter(blocks).items()
                ]
                terms.append(reduce(multiply, factors, outer))
        if terms:
            parts[index] = _total(terms)
    return Jet(space, parts)


def _total(terms: Iterable[Span]) -> Span:
    return reduce(add, terms)


def _subsets(count: int) -> list[Index]:
    return [chosen for size in range(count + 1) for chosen in combinations(range(count), size)]


def _broadcast(span: Span, shape: tuple[int, ...]) -> Span:
    if span.lo.shape == shape:
        return span
    if span.is_point:
        return point(jnp.broadcast_to(span.lo, shape))
    return Span(*(jnp.broadcast_to(end, shape) for end in span))
