"""BlackJAX: our samplers in its drivers, its tuning for our samplers, our targets for its."""

from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.core.optional_packages import required
from amagold.data import InMemory
from amagold.interop._blackjax_algorithm import Algorithm
from amagold.samplers import Sampler, hmc as _hmc, l2mc as _l2mc
from amagold.target import Posterior, Target

# as blackjax.hmc: what its drivers build themselves of a log density, and its adaptations tune
hmc = Algorithm(_hmc)
l2mc = Algorithm(_l2mc)


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
    step_size, inverse = parameters["step_size"], parameters["inverse_mass_matrix"]
    if isinstance(inverse, tuple):
        raise ValueError(
            f"inverse_mass_matrix must be a vector or a matrix, got {type(inverse).__name__}; tune "
            "with blackjax.window_adaptation instead of window_adaptation_low_rank"
        )
    if not trees.is_concrete((step_size, inverse)):
        raise ValueError(
            "parameters must be numbers, got values that JAX traces; call settings_from outside of "
            "jax.jit and jax.vmap, or give the parameters to amagold.interop.blackjax.hmc there"
        )
    shape = np.shape(inverse)
    if np.ndim(step_size) or len(shape) not in (1, 2) or len({*shape}) > 1:
        raise ValueError(
            "inverse_mass_matrix must be a vector or a square matrix and step_size one number, got "
            f"shapes {shape} and {np.shape(step_size)}; tune one chain, or choose one chain's "
            "parameters"
        )
    inverse = np.asarray(inverse, np.float64)
    mass = 1.0 / inverse if inverse.ndim == 1 else _inverted(inverse)
    return {"step_size": float(step_size), "mass": np.float32(mass)}


def _inverted(matrix: np.ndarray) -> np.ndarray:
    try:
        found = np.linalg.inv(matrix)
    except np.linalg.LinAlgError:
        raise ValueError(
            "inverse_mass_matrix must be positive definite, got a singular matrix; tune for more "
            "steps, or with is_mass_matrix_diagonal=True"
        ) from None
    return 0.5 * (found + found.T)  # rounding


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
