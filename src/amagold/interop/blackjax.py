"""BlackJAX: our samplers in its drivers, its tuning for our samplers, our targets for its."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.optional_packages import required
from amagold.data import InMemory
from amagold.samplers import Sampler
from amagold.target import Posterior, Target


def as_top_level_api(sampler: Sampler) -> Any:
    """The sampler as a `blackjax.SamplingAlgorithm`: `init(position, rng_key=None)` and
    `step(rng_key, state)`.

    BlackJAX's own drivers take the sampler itself too; this is for code that asks for the type.
    """
    blackjax = required("blackjax", "blackjax")
    return blackjax.base.SamplingAlgorithm(
        lambda position, rng_key=None: sampler.init(position, rng_key),
        lambda rng_key, state: sampler.step(rng_key, state),
    )


def settings_from(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """What `blackjax.window_adaptation` found, as arguments of `amagold.hmc`, `amagold.l2mc` and
    `amagold.amagold`: `step_size` and `mass`.

    BlackJAX gives the inverse of the mass matrix, or of its diagonal.
    """
    missing = [name for name in ("step_size", "inverse_mass_matrix") if name not in parameters]
    if missing:
        raise ValueError(
            f"parameters must hold step_size and inverse_mass_matrix, got no {missing[0]}; give "
            "the `parameters` of what blackjax.window_adaptation(...).run(...) returns first"
        )
    inverse = np.asarray(parameters["inverse_mass_matrix"], np.float64)
    if inverse.ndim not in (1, 2):
        raise ValueError(
            f"inverse_mass_matrix must be a vector or a matrix, got shape {inverse.shape}; tune "
            "one chain, or choose one chain's parameters"
        )
    mass = 1.0 / inverse if inverse.ndim == 1 else np.linalg.inv(inverse)
    if inverse.ndim == 2:
        mass = 0.5 * (mass + mass.T)  # rounding
    return {"step_size": float(parameters["step_size"]), "mass": np.float32(mass)}


def log_density_of(target: Target) -> Callable[[trees.PyTree], jax.Array]:
    """The target's log density over all data, as BlackJAX's algorithms take it."""
    if not isinstance(target, Posterior):
        return target.log_prior
    examples = target.examples
    if not isinstance(examples, InMemory):
        raise ValueError(
            f"target must have its examples in memory, got {type(examples).__name__}; BlackJAX "
            "looks at all of them at every step"
        )

    def log_density(position: trees.PyTree) -> jax.Array:
        of_rows = target.log_likelihoods(position, examples.arrays)
        return target.log_prior(position) + jnp.sum(of_rows)

    return log_density
