"""Walker's alias table: a slot with probability proportional to its weight, in constant time
however many there are.
"""

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.core import trees
from amagold.core.array_types import Float, Float32, Int32


@trees.record()
class AliasTable:
    """Pick a slot uniformly; keep it with its probability, else take its alias."""

    probability: Float32[Array, " slots"]
    alias: Int32[Array, " slots"]

    def pick(
        self, slots: Int32[Array, "*shape"], uniforms: Float[Array, "*shape"]
    ) -> Int32[Array, "*shape"]:
        kept = uniforms < self.probability.at[slots].get(mode="promise_in_bounds")
        return jnp.where(kept, slots, self.alias.at[slots].get(mode="promise_in_bounds"))


def alias_table(weights: Float[np.ndarray, " slots"]) -> AliasTable:
    """The table for weights, one of them positive, by cumulative sums: each heavy slot in turn
    fills up the light ones until it is light itself.
    """
    # 32-bit numbers where they will do: beside ten million examples every array counts
    scaled = np.asarray(weights, np.float64) * (len(weights) / np.sum(weights, dtype=np.float64))
    is_light = scaled < 1.0
    light, heavy = (np.flatnonzero(chosen).astype(np.int32) for chosen in (is_light, ~is_light))
    probability, alias = (
        np.minimum(scaled, 1.0).astype(np.float32),
        np.arange(len(weights), dtype=np.int32),
    )
    if len(light) and len(heavy):
        demand = np.cumsum(1.0 - scaled[light])  # what the light slots up to this one lack
        supply = np.cumsum(scaled[heavy] - 1.0)  # what the heavy slots up to this one have to give
        # a light slot is filled by the first heavy one that has anything left when its turn comes
        before = np.concatenate([[0.0], demand[:-1]])
        alias[light] = heavy[
            np.minimum(np.searchsorted(supply, before, side="right"), len(heavy) - 1)
        ]
        # the light slot that empties a heavy one may take more than it has, which the next heavy
        # one makes up for
        last = np.minimum(np.searchsorted(demand, supply, side="left"), len(demand) - 1)
        probability[heavy] = np.clip(1.0 - (demand[last] - supply), 0.0, 1.0)
        alias[heavy[:-1]] = heavy[1:]
        probability[heavy[-1]] = 1.0
    return AliasTable(jax.device_put(probability), jax.device_put(alias))
