"""Sums over examples, from sums over parts of them."""

from typing import Any, Protocol, TypeVar, runtime_checkable

import jax
import jax.numpy as jnp

Carry = TypeVar("Carry")


@runtime_checkable
class Summable(Protocol):
    """What adds up in its own way, such as in float64. Zeros are nothing."""

    def plus(self, other: Any) -> Any: ...


def sum_of(left: Carry, right: Carry) -> Carry:
    """What a walk over the examples of both carries: leaf by leaf, or as the parts say
    themselves.
    """

    def add(one: Any, other: Any) -> Any:
        return one.plus(other) if isinstance(one, Summable) else one + other

    return jax.tree.map(add, left, right, is_leaf=lambda node: isinstance(node, Summable))


def no_sum(like: Carry) -> Carry:
    """What a walk over no examples carries."""
    return jax.tree.map(jnp.zeros_like, like)
