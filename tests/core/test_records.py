"""Records that JAX looks into."""

import dataclasses

import jax
import numpy as np

from amagold.core import trees


@trees.record(static=("order",), functions=("rule",))
class Base:
    order: int
    rule: object
    value: float


@trees.record(static=("name",))
class Derived(Base):
    name: str = "derived"


def test_a_derived_record_inherits_what_is_static():
    """Else its numbers that choose a program would be traced, and fail far from here."""
    one = Derived(2, np.sum, 1.0)
    assert jax.tree.leaves(one) == [1.0]
    doubled = jax.jit(lambda record: dataclasses.replace(record, value=record.order * record.value))
    assert float(doubled(one).value) == 2.0
    assert doubled(one).name == "derived"
    assert jax.tree.leaves(Base(2, np.sum, 1.0)) == [1.0]
