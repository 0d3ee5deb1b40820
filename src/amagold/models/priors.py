"""Priors as values: two of them with the same settings are equal, so that a model built again does not recompile."""

from dataclasses import dataclass

import jax

from amagold import trees


@dataclass(frozen=True)
class Normal:
    """Independent N(0, scale^2) on every parameter, up to a constant."""

    scale: float

    def __call__(self, position: trees.PyTree) -> jax.Array:
        return -0.5 / self.scale**2 * trees.dot(position, position)
