"""All examples in a random order of which any part can be asked for: a fresh order for each test,
without touching the rest.

The swap-or-not shuffle (Hoang, Morris and Rogaway, 2012). A round pairs every number x with K - x
(mod N) for a random K, and a hash of the pair says whether its two members swap. Each round is a
bijection of 0, ..., N - 1, so no number comes twice, whatever the hash. Where a number goes is
uniform as soon as one round has moved it, which all but 2^-ROUNDS have been; the joint law of few
numbers nears that of draws without replacement as fast.

A once shuffled order with a random start would cost less, but the few windows that a large sample
could fall on stay the same for the whole run, and so would a test's errors: they would add up to a
bias of that order instead of averaging out.
"""

import jax
import jax.numpy as jnp
from jax import Array

from amagold.core import trees
from amagold.core.array_types import Bool, Int, Int32, UInt32
from amagold.core.randomness import row_numbers
from amagold.core.shapes import RandomKey, Whole

ROUNDS = 24

Numbers = Int[Array, "*numbers"]
Bits = UInt32[Array, ""]


@trees.record(static=("num_examples",))
class RandomOrder:
    """A permutation of 0, ..., num_examples - 1, one of a great many."""

    num_examples: int
    sums: Int32[Array, " rounds"]  # K of each round
    keys: UInt32[Array, " rounds"]  # of each round's hash

    def __call__(self, places: Numbers) -> Numbers:
        """The examples at these places of the order, each place once; places are 0, ...,
        num_examples - 1.
        """

        def swap(examples: Numbers, of_round: tuple[Whole, Bits]) -> tuple[Numbers, None]:
            total, key = of_round
            partner = total - examples
            partner = jnp.where(partner < 0, partner + self.num_examples, partner)
            # both members of a pair see the same bit
            return jnp.where(_bit(jnp.maximum(examples, partner), key), partner, examples), None

        return jax.lax.scan(swap, places.astype(jnp.int32), (self.sums, self.keys))[0]


def random_order(key: RandomKey, num_examples: int) -> RandomOrder:
    """An order, from a key: O(1), however many examples there are."""
    sum_key, hash_key = jax.random.split(key)
    return RandomOrder(
        num_examples,
        row_numbers(sum_key, (ROUNDS,), num_examples),
        jax.random.bits(hash_key, (ROUNDS,), jnp.uint32),
    )


def _bit(values: Numbers, key: Bits) -> Bool[Array, "*numbers"]:
    """A random bit for each value: the top one after two multiplications that spread every bit of
    the value upwards.
    """
    mixed = (values.astype(jnp.uint32) ^ key) * jnp.uint32(0x9E3779B1)
    mixed = (mixed ^ (mixed >> 15)) * jnp.uint32(0x85EBCA77)
    mixed = (mixed ^ (mixed >> 13)) * jnp.uint32(0xC2B2AE3D)
    return (mixed >> 31).astype(jnp.bool_)
