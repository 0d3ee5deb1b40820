"""The settings of a sampler that warm-up may turn: step size, mass and number of steps."""

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.samplers import Sampler
from amagold.trajectory._densities import FromDensities
from amagold.trajectory._mass_matrix import DenseMass, DiagonalMass, Mass, ScalarMass


def has_knob(sampler: Sampler, name: str) -> bool:
    """Whether the sampler's proposal has a `step_size` or a `mass` to adapt."""
    return hasattr(_own(sampler), name)


def knob(sampler: Sampler, name: str) -> Any:
    return getattr(_own(sampler), name)


def number(sampler: Sampler, name: str) -> float | None:
    """A setting of the proposal, if it has it and it is one number."""
    value = knob(sampler, name) if has_knob(sampler, name) else None
    return float(value) if value is not None and np.ndim(value) == 0 else None


def turn(sampler: Sampler, **settings: Any) -> Sampler:
    """The sampler with other settings of its proposal; traced values may be given."""
    own = _own(sampler)
    changed = (
        own._replace(**settings)
        if hasattr(own, "_replace")
        else dataclasses.replace(own, **settings)
    )
    proposal = (
        FromDensities(changed, sampler.proposal.is_tested)
        if isinstance(sampler.proposal, FromDensities)
        else changed
    )
    return dataclasses.replace(sampler, proposal=proposal)


def prepare_mass(mass: Mass, kind: str | None, position: trees.PyTree) -> Mass:
    """The mass in the form that warm-up will keep, so that a new estimate does not compile anything
    again.
    """
    size = trees.size(position)
    if kind is None or (kind == "dense" and isinstance(mass, DenseMass)):
        return mass
    if kind == "diagonal":
        if isinstance(mass, DenseMass):
            # the standard deviations that W^T W = M^-1 gives each parameter
            return DiagonalMass(jnp.sqrt(jnp.sum(mass.inverse_factor**2, axis=0)))
        return DiagonalMass(_scales(mass, position))
    scales = _scales(mass, position)
    # W^T W = M^-1 for a diagonal M
    return (
        DenseMass(jnp.diag(scales), jnp.diag(1.0 / scales))
        if size
        else DenseMass(jnp.zeros((0, 0)), jnp.zeros((0, 0)))
    )


def log_scale(mass: Mass) -> float:
    """log det(W) / d: the geometric mean of what one unit of step moves a parameter by."""
    if isinstance(mass, ScalarMass):
        return float(np.log(np.asarray(mass.inverse_scale)))
    if isinstance(mass, DiagonalMass):
        scales = np.concatenate(
            [np.ravel(np.asarray(leaf)) for leaf in jax.tree.leaves(mass.inverse_scale)]
        )
        return float(np.mean(np.log(scales)))
    return float(np.mean(np.log(np.abs(np.diagonal(np.asarray(mass.inverse_factor))))))


def _scales(mass: Any, position: trees.PyTree) -> Any:
    ones = trees.unflatten_like(np.ones(trees.size(position), np.float32), position)
    return trees.flatten(mass.force(ones)).astype(jnp.float32)


def _own(sampler: Sampler) -> Any:
    return (
        sampler.proposal.proposal
        if isinstance(sampler.proposal, FromDensities)
        else sampler.proposal
    )
