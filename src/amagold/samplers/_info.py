"""Diagnostics of a transition. Each says itself how it is told of several transitions at once."""

import dataclasses
from collections.abc import Callable
from dataclasses import field
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees

INT32_MAX = 2**31 - 1


class Reduction(NamedTuple):
    """One value for the transitions between two kept draws."""

    over: Callable[[Any], Any]  # of values stacked on a leading axis, on a device
    join: Callable[[Any, Any, int, int], Any]  # of two pieces of so many transitions, on the host


def _total(counts: jax.Array) -> jax.Array:
    """Summed in float64, because many transitions outgrow 32 bits, and returned as float32: exact
    up to 2^24.
    """
    with jax.enable_x64(True):
        return counts.astype(jnp.float64).sum(axis=0).astype(jnp.float32)


def _total_on_host(earlier: Any, later: Any, before: int, now: int) -> Any:
    """In float64, which float32 would not do: to a large count it adds a small one wrongly, the
    same way each time.
    """
    return np.asarray(earlier, np.float64) + np.asarray(later, np.float64)


LAST = Reduction(lambda values: values[-1], lambda earlier, later, before, now: later)
MEAN = Reduction(
    lambda values: values.mean(axis=0),
    lambda earlier, later, before, now: (earlier * before + later * now) / (before + now),
)
ANY = Reduction(
    lambda values: values.any(axis=0), lambda earlier, later, before, now: earlier | later
)
TOTAL = Reduction(_total, _total_on_host)
# of the blocks of a transition, by name: each as it is told itself
EACH = Reduction(
    lambda blocks: {name: info.reduced() for name, info in dict(blocks).items()} or (),
    lambda earlier, later, before, now: (
        {name: info.joined(later[name], before, now) for name, info in dict(earlier).items()} or ()
    ),
)
LARGEST = Reduction(
    lambda tree: jax.tree.map(lambda leaf: leaf.max(axis=0), tree),
    lambda earlier, later, before, now: jax.tree.map(jnp.maximum, earlier, later),
)


def statistic(reduction: Reduction, column: str = "", sign: float = 1.0) -> dict[str, Any]:
    """Of a field of `Info`: how it is reduced, and by what name a store keeps it, with which sign.

    A field without a column is not stored.
    """
    return {"reduction": reduction, "column": column, "sign": sign}


# what is kept of each block
BLOCK_COLUMNS = ("acceptance_rate", "accepted", "num_gradient_examples", "num_energy_examples")


def block_column(column: str, name: str) -> str:
    return f"{column}_{name}"


# what is kept of each move of a sweep
MOVE_COLUMNS = ("acceptance_rate", "num_energy_examples")


class _Told:
    """What has fields that say how they are told of several transitions."""

    def reduced(self) -> Any:
        """One for transitions that are stacked on a leading axis."""
        return self._each(lambda name, how: how.over(getattr(self, name)))

    def joined(self, later: Any, before: int, now: int) -> Any:
        """One for this one, of so many transitions, and a later one."""
        return self._each(
            lambda name, how: how.join(getattr(self, name), getattr(later, name), before, now)
        )

    def columns(self) -> dict[str, Any]:
        """What a store may keep, by ArviZ's names."""
        found = {}
        for each in _statistics(self):
            column, sign = each.metadata["column"], each.metadata["sign"]
            if column:
                value = getattr(self, each.name)
                found[column] = value if sign == 1.0 else sign * np.asarray(value)
        return found

    def _each(self, compute: Callable[[str, Reduction], Any]) -> Any:
        changed = {
            each.name: compute(each.name, each.metadata["reduction"]) for each in _statistics(self)
        }
        return dataclasses.replace(self, **changed)  # type: ignore[type-var]


@trees.record()
class MoveInfo(_Told):
    """Diagnostics of one move of a sweep."""

    acceptance_rate: jax.Array = field(metadata=statistic(MEAN, "acceptance_rate"))
    num_energy_examples: jax.Array = field(metadata=statistic(TOTAL, "num_energy_examples"))


@trees.record(static=("label",))
class Info(_Told):
    """Diagnostics of one transition. `label` says whether the sampler that made it is exact or
    biased.
    """

    is_accepted: jax.Array = field(metadata=statistic(LAST, "accepted"))
    acceptance_rate: jax.Array = field(metadata=statistic(MEAN, "acceptance_rate"))  # min(1, a)
    # log a = U(theta) - U(theta*) + rho
    log_ratio: jax.Array = field(metadata=statistic(LAST, "energy_error", sign=-1.0))
    # the ratio was NaN, infinite or hopeless; the proposal was rejected
    is_divergent: jax.Array = field(metadata=statistic(ANY, "diverging"))
    num_gradient_examples: jax.Array = field(metadata=statistic(TOTAL, "num_gradient_examples"))
    num_energy_examples: jax.Array = field(metadata=statistic(TOTAL, "num_energy_examples"))
    # an example that broke the test's bound, or -1; empty where the test has none
    broken_bound: Any = field(metadata=statistic(LARGEST))
    label: str
    # of samplers that are put together the Info of each block by its name, of a sweep the MoveInfo
    # of each move; else empty
    blocks: Any = field(default=(), metadata=statistic(EACH))

    def columns(self) -> dict[str, Any]:
        """Those of the blocks too."""
        found = super().columns()
        for name, info in dict(self.blocks).items():
            told = info.columns()
            kept = (column for column in BLOCK_COLUMNS if column in told)
            found |= {block_column(column, name): told[column] for column in kept}
        return found


def _statistics(told: Any) -> list[Any]:
    """The fields that are told of each transition."""
    return [each for each in dataclasses.fields(told) if "reduction" in each.metadata]


def count(examples: int) -> jax.Array:
    """A count as an array; as a float where it would overflow an int32."""
    return jnp.int32(examples) if examples <= INT32_MAX else jnp.float32(examples)
