"""Which examples arrive, each as often as its bound is large, from a table that does not grow with
the data.

| symbol | here |
|---|---|
| c_i, C = sum_i c_i | an example's bound, computed from its row |
| B | examples to a slot, neighbours; one, up to a million examples |
| c_s = max c_i over the slot s | what the table keeps |

A candidate is a slot, with probability proportional to c_s, and any of its B rows alike; it arrives
with probability c_i / c_s. Candidates of rate B sum_s c_s therefore give arrivals of rate C, each i
with probability c_i / C: what a table of all examples would give. A row is read to be looked at
anyway, so that its own bound costs no more reading.

Slots and rows are named by bits, whose numbers are powers of two, so that all are exactly alike.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.acceptance._alias_table import AliasTable, alias_table
from amagold.core import trees
from amagold.core.array_types import Bool, Float32, Int32, UInt32
from amagold.core.randomness import unit
from amagold.core.shapes import PerRow, RandomKey, Rows, Scalar
from amagold.energy._wide_sums import Wide
from amagold.mode._row_bounds import BoundSums, RowBound, num_slots, rows_per_slot

# of a slot's bound: a row's own is computed again by another program, which may round differently
HEADROOM = 1e-5


@trees.record(static=("num_rows", "each"), functions=("bound",))
class ArrivalTable:
    """`arrival_table` makes it."""

    alias: AliasTable
    weights: Float32[Array, " slots"]  # c_s
    total: Scalar  # C
    excess: Scalar  # candidates to an arrival, B sum_s c_s / C
    bound: RowBound
    num_rows: int
    each: int  # B

    @property
    def num_words(self) -> int:
        """Of 32 random bits, that name a candidate and decide whether it arrives."""
        return 2 if self.each == 1 else 3

    def candidates(
        self, words: UInt32[Array, "words rows"]
    ) -> tuple[Int32[Array, " rows"], Float32[Array, " rows"]]:
        """Row numbers, and the bounds c_s of their slots. A number beyond the data is no row's."""
        slot_bits = self.weights.shape[0].bit_length() - 1
        slots = (words[0] >> (32 - slot_bits)).astype(jnp.int32)
        slots = self.alias.pick(slots, unit(words[1]))
        weights = self.weights.at[slots].get(mode="promise_in_bounds")
        if self.each == 1:
            return slots, weights
        return slots * self.each + (words[0] & (self.each - 1)).astype(jnp.int32), weights

    def arriving(
        self,
        words: UInt32[Array, "words rows"],
        weights: PerRow,
        rows: Rows,
    ) -> tuple[Bool[Array, " rows"], PerRow]:
        """Which of the candidates arrive, and their own bounds c_i."""
        own = self.own_weights(weights, rows)
        if self.each == 1:
            return jnp.ones(weights.shape, bool), own
        return unit(words[2]) * weights < own, own

    def own_weights(self, weights: PerRow, rows: Rows) -> PerRow:
        """c_i of candidates, from their rows and the bounds of their slots."""
        if self.each == 1:
            return weights
        return jnp.minimum(jax.vmap(self.bound)(rows)[0], weights)

    def some(self, key: RandomKey, count: int) -> tuple[Int32[Array, " rows"], PerRow]:
        """Numbers of candidates, for measurements, and the bounds of their slots."""
        numbers, weights = self.candidates(
            jax.random.bits(key, (self.num_words, count), jnp.uint32)
        )
        return jnp.minimum(numbers, self.num_rows - 1), weights


def sums_of(table: ArrivalTable, num_examples: int) -> BoundSums:
    """What the table knows, in the slots of a larger one; the norms it does not know."""
    each, count = rows_per_slot(num_examples), num_slots(num_examples)
    joined = each // table.each  # slots that become one
    weights = np.asarray(table.weights)
    weights = np.pad(weights, (0, -len(weights) % joined)).reshape(-1, joined).max(axis=1)
    used = -(-table.num_rows // each)
    of_slots = np.pad(weights[:used], (0, count - used))
    return BoundSums(jnp.asarray(of_slots), Wide(table.total, jnp.float32(0.0)), jnp.float32(0.0))


def arrival_table(sums: BoundSums, bound: RowBound, num_examples: int) -> ArrivalTable:
    """The table of all examples' bounds."""
    each = rows_per_slot(num_examples)
    used = -(-num_examples // each)
    weights = np.asarray(sums.of_slots, np.float64)
    if each > 1:
        weights *= 1.0 + HEADROOM
    total = float(np.float64(sums.total.high) + np.float64(sums.total.low))
    candidates = each * float(weights.sum())
    # a slot whose examples cannot matter is never drawn, but it must exist
    drawn = np.where(
        np.arange(len(weights)) < used, np.maximum(weights, np.finfo(np.float64).tiny), 0.0
    )
    excess = 1.0 if each == 1 or not total else candidates / total
    return ArrivalTable(
        alias=alias_table(drawn),
        weights=jax.device_put(weights.astype(np.float32)),
        total=jax.device_put(np.float32(total)),
        excess=jax.device_put(np.float32(excess)),
        bound=bound,
        num_rows=num_examples,
        each=each,
    )
