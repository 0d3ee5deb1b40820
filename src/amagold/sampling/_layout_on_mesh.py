"""A target whose data are split over a mesh that the user gave."""

import dataclasses
from typing import Any

import jax
from jax.sharding import Mesh

from amagold.data import CHAIN, DATA, split_over
from amagold.samplers import Kernel
from amagold.target import Posterior


def plain(mesh: Mesh | None) -> Mesh | None:
    """The same devices under the same names, whose arrays JAX lays out by itself: `jax.make_mesh`
    may ask for types that say where they lie.
    """
    return Mesh(mesh.devices, mesh.axis_names) if isinstance(mesh, Mesh) else mesh


def laid_out(target_or_sampler: Any, mesh: Mesh, num_chains: int) -> Any:
    """The target, or the sampler, with its data where the mesh says; what a sampler knows of all
    data beforehand stays.
    """
    if not isinstance(mesh, Mesh) or not {CHAIN} <= set(mesh.axis_names) <= {CHAIN, DATA}:
        got = mesh.axis_names if isinstance(mesh, Mesh) else type(mesh).__name__
        raise ValueError(
            f"mesh must be a jax.sharding.Mesh with an axis {CHAIN!r} and perhaps an axis "
            f"{DATA!r}, got {got}; for example jax.make_mesh((1, 2), ({CHAIN!r}, {DATA!r}))"
        )
    if num_chains % mesh.shape[CHAIN]:
        raise ValueError(
            f"mesh must have as many devices along {CHAIN!r} as divide num_chains, got "
            f"{mesh.shape[CHAIN]} for {num_chains} chains"
        )
    if jax.process_count() > 1:
        raise ValueError(
            "mesh must be None where there are several processes: chains and parts of the data are "
            "then spread over the devices of all of them"
        )
    if mesh.shape.get(DATA, 1) == 1:
        return target_or_sampler
    if isinstance(target_or_sampler, Kernel):
        target = laid_out(target_or_sampler.target, mesh, num_chains)
        return dataclasses.replace(target_or_sampler, target=target)  # type: ignore[type-var]
    if not isinstance(target_or_sampler, Posterior):
        return target_or_sampler
    split = split_over(target_or_sampler.examples, mesh, DATA)
    return dataclasses.replace(target_or_sampler, data=split)
