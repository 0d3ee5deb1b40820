"""Run by `amagold launch`: what one of the processes measures, on its share of the cores."""

import json
import sys

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, PartitionSpec as Spec

import amagold
from amagold.mode._derivatives import derivatives_at
from amagold_lab.bench.processes import NUM_CHAINS, NUM_SAMPLES, shortest

NUM_EXCHANGES = 1_000

here, count = jax.process_index(), jax.process_count()
data = amagold.data.open(sys.argv[1], part=(here, count) if count > 1 else None, progress=False)
target = amagold.models.logistic(data, outcome="y")
position = target.init


mesh = Mesh(np.array(jax.devices()), ("all",))


def sums(value: jax.Array) -> jax.Array:
    """Over all devices, many of them, one after the other."""
    return jax.lax.fori_loop(
        0, NUM_EXCHANGES, lambda _, at: jax.lax.psum(at, "all") / mesh.size, value
    )


exchange = jax.jit(
    jax.shard_map(sums, mesh=mesh, in_specs=Spec(), out_specs=Spec(), check_vma=False)
)
jax.block_until_ready(derivatives_at(target, position, 2))
pass_seconds = shortest(lambda: derivatives_at(target, position, 2))
exchange_seconds = shortest(lambda: exchange(jnp.ones(1))) / NUM_EXCHANGES
run = amagold.sample(target, num_samples=NUM_SAMPLES, num_chains=NUM_CHAINS * count, progress=False)
draws = NUM_SAMPLES * NUM_CHAINS * count / run.sampling_seconds
if here == 0:
    print(
        json.dumps(
            {
                "pass_seconds": pass_seconds,
                "exchange_microseconds": 1e6 * exchange_seconds,
                "draws_per_second": draws,
            }
        )
    )
