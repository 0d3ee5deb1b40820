"""Our full-batch samplers in the shape of BlackJAX's own algorithms, which its adaptations tune."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
from jax.scipy.linalg import solve_triangular

from amagold.core import trees
from amagold.core.optional_packages import required
from amagold.samplers import Sampler
from amagold.target import Density
from amagold.trajectory._mass_matrix import DenseMass

LogDensity = Callable[[trees.PyTree], jax.Array]


class AlgorithmState(NamedTuple):
    """A sampler's state, with what adaptations read."""

    position: trees.PyTree
    logdensity_grad: trees.PyTree
    own: Any


class AlgorithmInfo(NamedTuple):
    """Diagnostics by BlackJAX's names; its filters ask for a NamedTuple."""

    acceptance_rate: jax.Array
    is_accepted: jax.Array
    is_divergent: jax.Array


@dataclass(frozen=True)
class Algorithm:
    """What `blackjax.hmc` is to BlackJAX: `init`, `build_kernel`, and by a call the algorithm whose
    settings are known.
    """

    sampler: Callable[..., Sampler]

    def __call__(
        self, logdensity_fn: LogDensity, step_size: Any, inverse_mass_matrix: Any, **settings: Any
    ) -> Any:
        """A `blackjax.SamplingAlgorithm`. Settings are the sampler's: `num_steps`, `friction`."""
        blackjax = required("blackjax", "blackjax")
        kernel = self.build_kernel()
        known = {"step_size": step_size, "inverse_mass_matrix": inverse_mass_matrix, **settings}
        return blackjax.base.SamplingAlgorithm(
            lambda position, rng_key=None: self.init(position, logdensity_fn),
            lambda rng_key, state: kernel(rng_key, state, logdensity_fn, **known),
        )

    def init(self, position: trees.PyTree, logdensity_fn: LogDensity) -> AlgorithmState:
        """The state at a position, which no setting has a say in."""
        sampler = self.sampler(Density(logdensity_fn), step_size=1.0)
        return _seen(sampler.init(position), logdensity_fn)

    def build_kernel(self) -> Callable[..., tuple[AlgorithmState, AlgorithmInfo]]:
        """The transition, given its settings with every call."""

        # named one by one, because BlackJAX asks which arguments there are
        def kernel(
            rng_key: jax.Array,
            state: AlgorithmState,
            logdensity_fn: LogDensity,
            step_size: Any,
            inverse_mass_matrix: Any,
            num_steps: int = 10,
            friction: Any = None,
        ) -> tuple[AlgorithmState, AlgorithmInfo]:
            """One transition of the sampler."""
            others = {} if friction is None else {"friction": friction}
            sampler = self.sampler(
                Density(logdensity_fn),
                step_size=step_size,
                mass=_mass_of(inverse_mass_matrix),
                num_steps=num_steps,
                **others,
            )
            moved, info = sampler.step(rng_key, state.own)
            found = AlgorithmInfo(info.acceptance_rate, info.is_accepted, info.is_divergent)
            return _seen(moved, logdensity_fn), found

        return kernel


def _seen(own: Any, logdensity_fn: LogDensity) -> AlgorithmState:
    return AlgorithmState(own.position, jax.grad(logdensity_fn)(own.position), own)


def _mass_of(inverse: Any) -> Any:
    """The mass, from its inverse or from that of its diagonal."""
    if isinstance(inverse, tuple) or jnp.ndim(inverse) not in (1, 2):
        raise ValueError(
            "inverse_mass_matrix must be a vector or a matrix, got "
            f"{type(inverse).__name__}; tune with blackjax.window_adaptation, which finds one"
        )
    if jnp.ndim(inverse) == 1:
        return 1.0 / inverse
    # M^-1 = C C^T, so that W = C^T
    factor = jnp.linalg.cholesky(inverse)
    identity = jnp.eye(len(factor), dtype=factor.dtype)
    return DenseMass(factor.T, solve_triangular(factor, identity, lower=True).T)
