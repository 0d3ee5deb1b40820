"""Where chains run: spread over the host's devices, with what they share on each of them."""

from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as Spec

SHARED_BYTES = 2**16  # arrays from this size on are worth sharing between the host's devices


def chain_mesh(num_chains: int) -> Mesh | None:
    """The devices that chains are spread over: as many as divide the number of chains; None for
    one.
    """
    devices = jax.devices()
    usable = max(count for count in range(1, len(devices) + 1) if num_chains % count == 0)
    return None if usable == 1 else Mesh(np.array(devices[:usable]), ("chain",))


def spread(mesh: Mesh | None, by_chain: Any, shared: Any) -> tuple[Any, Any]:
    """Put what has a leading chain axis onto the devices chain by chain, and the rest onto each of
    them.
    """
    if mesh is None:
        return by_chain, shared
    # from one device to many JAX compiles a program for every shape; from the host's memory it
    # needs none
    by_chain = jax.tree.map(partial(_as_host_memory, at_least=0), by_chain)
    shared = jax.tree.map(_as_host_memory, shared)
    return jax.device_put(by_chain, NamedSharding(mesh, Spec("chain"))), jax.device_put(
        shared, NamedSharding(mesh, Spec())
    )


def _as_host_memory(leaf: Any, at_least: int = SHARED_BYTES) -> Any:
    """Large arrays in the host's memory as NumPy sees them: all host devices then share them, where
    device to device they are copied.
    """
    if (
        not isinstance(leaf, jax.Array)
        or jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key)
        or len(leaf.devices()) > 1
    ):
        return leaf
    is_on_host = all(device.platform == "cpu" for device in leaf.devices())
    return np.asarray(leaf) if is_on_host and leaf.nbytes >= at_least else leaf
