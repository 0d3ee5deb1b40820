"""The settings of a sampler that warm-up may set: step size and mass matrix."""

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.samplers import Kernel
from amagold.trajectory._arrow_mass import ArrowMass
from amagold.trajectory._mass_matrix import DenseMass, DiagonalMass, Mass, ScalarMass


def number(sampler: Kernel, name: str) -> float | None:
    """A setting of the sampler, if it has it and it is one number."""
    value = sampler.settings.get(name)
    return float(value) if value is not None and np.ndim(value) == 0 else None


def step_sizes(sampler: Kernel) -> np.ndarray | None:
    """The step size that warm-up may set, or those of all blocks; None where there are none."""
    value = sampler.settings.get("step_size")
    return None if value is None or np.ndim(value) > 1 else np.asarray(value, np.float32)


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
        if isinstance(mass, ArrowMass):
            return DiagonalMass(jnp.sqrt(mass.variances()))
        return DiagonalMass(_scales(mass, position))
    if isinstance(mass, ArrowMass):
        # W^T of every unit vector is a row of W
        rows = jax.vmap(mass.velocity)(jnp.eye(size))
        return DenseMass(rows, jnp.linalg.inv(rows))
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
    if isinstance(mass, ArrowMass):
        return mass.log_determinant / max(mass.num_parameters, 1)
    return float(np.mean(np.log(np.abs(np.diagonal(np.asarray(mass.inverse_factor))))))


def _scales(mass: Any, position: trees.PyTree) -> Any:
    ones = trees.unflatten_like(np.ones(trees.size(position), np.float32), position)
    return trees.flatten(mass.force(ones)).astype(jnp.float32)
