"""Rows that count several times, or a part of a time."""

from dataclasses import dataclass
from typing import Any

import jax

from amagold.target import LinearBounds


@dataclass(frozen=True)
class Weighted:
    """w log p(y | z), of examples that have a weight: any outcome's likelihood and bounds, w times.

    One new outcome counts once, so what to expect of it is the outcome's own.
    """

    outcome: Any

    @property
    def bends_slowly(self) -> bool:
        return getattr(self.outcome, "bends_slowly", False)

    def __call__(self, z: jax.Array, example: Any) -> jax.Array:
        return example.weight * self.outcome(z, example)

    def bounds(self, predictor: Any) -> LinearBounds | None:
        """The weight belongs to the scale of each example, and so to its arrivals."""
        bounds = self.outcome.bounds(predictor)
        if bounds is None:
            return None
        lower = bounds.lower_curvature
        return bounds._replace(
            outcome=self,
            scale=WeightedTerm(bounds.scale),
            lower_curvature=None if lower is None else WeightedTerm(lower),
        )

    def mean(self, z: jax.Array) -> jax.Array:
        return self.outcome.mean(z)

    def draw(self, key: jax.Array, z: jax.Array) -> jax.Array:
        return self.outcome.draw(key, z)

    def log_density(self, y: jax.Array, z: jax.Array) -> jax.Array:
        return self.outcome.log_density(y, z)


@dataclass(frozen=True)
class WeightedTerm:
    """w times a number of (z, example); None is one."""

    term: Any

    def __call__(self, z: jax.Array, example: Any) -> jax.Array:
        return example.weight if self.term is None else example.weight * self.term(z, example)
