"""Where chains run: spread over the devices, with what they share on each of them."""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec as Spec

from amagold.data import CHAIN, DATA, Spread, on_mesh

SHARED_BYTES = 2**16  # arrays from this size on are worth sharing between the host's devices

_given: ContextVar[Mesh | None] = ContextVar("mesh", default=None)


@contextmanager
def using(mesh: Mesh | None) -> Iterator[None]:
    """Chains are spread over the first axis of this mesh, and not as they would be."""
    token = _given.set(mesh)
    try:
        yield
    finally:
        _given.reset(token)


def chain_mesh(num_chains: int, data: Spread | None = None) -> Mesh | None:
    """The devices that chains are spread over: of one machine as many as divide the number of
    chains, None for one.

    Where there are several processes, or data are split over the devices, all take part: groups of
    them run the same chains where there are more devices than chains, or they do not divide.
    """
    given = _given.get()
    if given is not None:
        return given
    if data is not None and data.axes != data.mesh.axis_names:
        return data.mesh  # on whose other axis the data are whole
    devices = np.array(jax.devices())
    if jax.process_count() > 1 or data is not None:
        groups = math.gcd(num_chains, len(devices))
        return Mesh(devices.reshape(groups, -1), (CHAIN, DATA))
    usable = max(count for count in range(1, len(devices) + 1) if num_chains % count == 0)
    return None if usable == 1 else Mesh(devices[:usable], (CHAIN,))


def spread(mesh: Mesh | None, by_chain: Any, shared: Any) -> tuple[Any, Any]:
    """Put what has a leading chain axis onto the devices chain by chain, and the rest onto each of
    them; data that are split over them stay where they are.
    """
    if mesh is None:
        return by_chain, shared
    # from one device to many JAX compiles a program for every shape; from the host's memory it
    # needs none
    by_chain = jax.tree.map(partial(_as_host_memory, at_least=0), by_chain)
    by_chain = jax.tree.map(partial(_put, sharding=NamedSharding(mesh, Spec(CHAIN))), by_chain)
    whole = NamedSharding(mesh, Spec())

    def put(leaf: Any) -> Any:
        if isinstance(leaf, Spread):
            return on_mesh(leaf, mesh)
        return _put(_as_host_memory(leaf), whole)

    return by_chain, jax.tree.map(put, shared, is_leaf=lambda node: isinstance(node, Spread))


def with_empty_in_place(mesh: Mesh | None, by_chain: Any) -> Any:
    """Of an array without elements a program says that it is whole on every device, and would be
    compiled anew for it when it is called next.
    """
    if mesh is None:
        return by_chain
    place = NamedSharding(mesh, Spec(CHAIN))
    return jax.tree.map(lambda leaf: leaf if leaf.size else _put(leaf, place), by_chain)


def specs_of(tree: Any) -> Any:
    """How a program's arguments lie on the devices: all on each, but for data that are split."""
    return jax.tree.map(
        lambda node: Spec(node.axes) if isinstance(node, Spread) else Spec(),
        tree,
        is_leaf=lambda node: isinstance(node, Spread),
    )


def _put(leaf: Any, sharding: NamedSharding) -> Any:
    if jax.process_count() == 1:
        return jax.device_put(leaf, sharding)
    if isinstance(leaf, jax.Array) and not leaf.is_fully_addressable:
        return leaf  # of all processes already
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        return jax.random.wrap_key_data(
            _put(np.asarray(jax.random.key_data(leaf)), sharding), impl=jax.random.key_impl(leaf)
        )
    values = np.asarray(leaf)
    return jax.make_array_from_callback(values.shape, sharding, lambda place: values[place])


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
