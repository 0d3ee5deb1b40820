"""Chains on their devices, and the one program that takes them a chunk further."""

from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, PartitionSpec as Spec

from amagold.core.compiling import OFTEN, jit
from amagold.data import CHAIN, elsewhere_in, spread_in
from amagold.runner._ahead import chunk_ahead
from amagold.runner._block import Advanced, Hook, chunk
from amagold.runner._layout import Layout
from amagold.runner._placement import chain_mesh, specs_of, spread, with_empty_in_place
from amagold.samplers import Sampler, State


class PlacedChains(NamedTuple):
    """Chains of one sampler on their devices."""

    sampler: Sampler
    key: jax.Array
    numbers: jax.Array
    mesh: Mesh | None

    @property
    def num_devices(self) -> int:
        return 1 if self.mesh is None else self.mesh.shape[CHAIN]

    @property
    def goes_ahead(self) -> bool:
        """Whether rows are elsewhere, and can be brought ahead."""
        return elsewhere_in(self.sampler.target) is not None and self.sampler.can_go_ahead

    def advance(
        self, states: State, first: int, count: int, layout: Layout, hook: Hook | None = None
    ) -> Advanced:
        """`count` draws further, from transition number `first` of the whole run."""
        _, following = spread(self.mesh, (), Hook() if hook is None else hook)
        return _run_chunk(
            self.sampler,
            self.key,
            self.numbers,
            (with_empty_in_place(self.mesh, states), following),
            np.uint32(first),
            np.uint32(count),
            layout,
            self.mesh,
            hook is None,
        )


def place(sampler: Sampler, key: jax.Array, states: State) -> tuple[PlacedChains, State]:
    """Chains and their states, spread over the devices. Each chain and each transition derive
    their own key from the one given.
    """
    num_chains = jax.tree.leaves(states.position)[0].shape[0]
    mesh = chain_mesh(num_chains, spread_in(sampler.target))
    numbers = np.arange(num_chains, dtype=np.uint32)
    (numbers, states), (sampler, key) = spread(mesh, (numbers, states), (sampler, key))
    return PlacedChains(sampler, key, numbers, mesh), states


@jit(OFTEN, "layout", "mesh", "is_drawing")
def _run_chunk(
    sampler: Sampler,
    key: jax.Array,
    chains: jax.Array,
    carry: tuple[State, Hook],
    first: Any,
    count: Any,
    layout: Layout,
    mesh: Mesh | None,
    is_drawing: bool,
) -> Advanced:
    if mesh is None:
        return _chunk(sampler, key, chains, carry, first, count, layout, None, is_drawing, False)
    chain, shared, by_draw = Spec(CHAIN), Spec(), Spec(None, CHAIN)
    # every process has all chains' draws, so that one can write them and all can look at them
    is_gathered = jax.process_count() > 1
    by_chain = Advanced(chain, by_draw, shared, shared)  # type: ignore[arg-type]
    split = jax.shard_map(
        partial(
            _chunk, layout=layout, axis_name=CHAIN, is_drawing=is_drawing, is_gathered=is_gathered
        ),
        mesh=mesh,
        in_specs=(specs_of(sampler), shared, chain, (chain, shared), shared, shared),
        out_specs=shared if is_gathered else by_chain,
        check_vma=False,
    )
    return split(sampler, key, chains, carry, first, count)


def _chunk(
    sampler: Sampler,
    key: jax.Array,
    chains: jax.Array,
    carry: tuple[State, Hook],
    first: Any,
    count: Any,
    layout: Layout,
    axis_name: str | None,
    is_drawing: bool,
    is_gathered: bool,
) -> Advanced:
    """On one device."""
    data = elsewhere_in(sampler.target)
    # what follows the transitions of all chains needs them side by side
    if data is not None and is_drawing and sampler.can_go_ahead:
        made = chunk_ahead(sampler, key, chains, carry, first, count, layout, data)
    else:
        made = chunk(sampler, key, chains, carry, first, count, layout, axis_name)
    if not is_gathered:
        return made
    gather = partial(jax.lax.all_gather, axis_name=CHAIN, tiled=True)
    return made._replace(
        states=jax.tree.map(gather, made.states),
        kept=jax.tree.map(partial(gather, axis=1), made.kept),
    )
