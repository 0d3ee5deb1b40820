"""How likely an outcome is, given what a module says about its input; and priors of weights."""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.interop._module_form import ModuleApply
from amagold.models._priors import LOG_SCALE

HALF_LOG_TWO_PI = 0.5 * math.log(2.0 * math.pi)


class ModuleExample(NamedTuple):
    """One example of a module's data: what goes in, and what was seen."""

    inputs: Any
    outcome: Any


@trees.record()
class ClassLikelihood:
    """log p(y | x, theta) = log softmax(f(x))_y."""

    outputs = "logits"
    is_trained = True  # chains start at `init`

    apply: ModuleApply

    def __call__(self, position: Any, example: ModuleExample) -> jax.Array:
        return jax.nn.log_softmax(self.apply(position, example.inputs))[example.outcome]


@trees.record()
class GaussianLikelihood:
    """log p(y | x, theta) = sum_k log N(y_k; f_k(x), s^2), s known or exp of a part of theta."""

    outputs = "numbers"
    is_trained = True  # chains start at `init`

    apply: ModuleApply
    noise_scale: jax.Array | None  # None: unknown

    def __call__(self, position: Any, example: ModuleExample) -> jax.Array:
        found = self.apply(position, example.inputs).reshape(jnp.shape(example.outcome))
        log_scale = self.log_noise_scale(position)
        residual = (example.outcome - found) * jnp.exp(-log_scale)
        # -(y - f)^2 / (2 s^2) - log s - log(2 pi) / 2
        return jnp.sum(-0.5 * residual**2 - log_scale - HALF_LOG_TWO_PI)

    def log_noise_scale(self, position: Any) -> jax.Array:
        return position[LOG_SCALE] if self.noise_scale is None else jnp.log(self.noise_scale)


@trees.record(functions=("function",))
class OwnLikelihood:
    """The user's log_likelihood(output, example)."""

    outputs = "numbers"
    is_trained = True  # chains start at `init`

    apply: ModuleApply
    function: Callable[[Any, ModuleExample], jax.Array]

    def __call__(self, position: Any, example: ModuleExample) -> jax.Array:
        return self.function(self.apply(position, example.inputs), example)


class NoiseScale(NamedTuple):
    """log s ~ N(log_center, log_scale^2)."""

    log_center: jax.Array
    log_scale: jax.Array


@trees.record(static=("words",))
class WeightPrior:
    """Independent N(0, scale^2) on every weight, by its path, up to a constant; and a normal on
    the log of an unknown noise scale.
    """

    scales: dict[str, jax.Array]
    noise: NoiseScale | None
    words: str

    def __call__(self, position: dict[str, jax.Array]) -> jax.Array:
        total = sum(
            (jnp.sum((position[path] / scale) ** 2) for path, scale in self.scales.items()),
            start=jnp.zeros(()),
        )
        if self.noise is not None:
            distance = (position[LOG_SCALE] - self.noise.log_center) / self.noise.log_scale
            total = total + distance**2
        return -0.5 * total

    def sentences(self) -> tuple[str, ...]:
        """The prior in words, said with the plan."""
        return (self.words,)
