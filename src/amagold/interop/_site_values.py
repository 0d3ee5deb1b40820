"""Draws of free numbers as values of a model's sites, and back."""

from typing import Any

import jax
import numpy as np

from amagold.core import trees
from amagold.interop._one_row import NumpyroModel
from amagold.target._derived import of_each_draw


@trees.record(static=("model",))
class SiteConstraints:
    """Values of the latent sites at one position."""

    model: NumpyroModel
    held: Any
    row: Any

    def __call__(self, position: trees.PyTree) -> dict[str, jax.Array]:
        return self.model.constrained(position, self.row, self.held)


@trees.record(static=("model",))
class FreeNumbers:
    """The position at which latent sites have some values."""

    model: NumpyroModel
    held: Any
    row: Any

    def __call__(self, values: trees.PyTree) -> dict[str, jax.Array]:
        return self.model.unconstrained(values, self.row, self.held)


@trees.record(static=("model",))
class DeterministicSites:
    """What follows from the values of the latent sites."""

    model: NumpyroModel
    held: Any
    row: Any

    def __call__(self, values: trees.PyTree) -> dict[str, jax.Array]:
        return self.model.derived(values, self.row, self.held)


@trees.record(static=("free", "constrained"))
class SiteTransform:
    """From free numbers to values of the sites, of draws with any leading axes."""

    to_sites: SiteConstraints
    to_free: FreeNumbers
    free: tuple[tuple[str, int], ...]  # how many axes each site has of its own
    constrained: tuple[tuple[str, int], ...]

    def __call__(self, position: trees.PyTree) -> trees.PyTree:
        return of_draws(self.to_sites, position, self.free)

    def inverse(self, reported: trees.PyTree) -> trees.PyTree:
        """Raises a sentence where a value lies outside its site's support."""
        found = of_draws(self.to_free, reported, self.constrained)
        for name, values in found.items():
            if not np.all(np.isfinite(values)):
                shown = np.array2string(np.ravel(reported[name])[:4], precision=4, separator=", ")
                raise ValueError(
                    f"{name!r} must lie inside the support of its site, ends excluded, got "
                    f"{shown}; start inside"
                )
        return found


def of_draws(
    function: Any, draws: dict[str, np.ndarray], own: tuple[tuple[str, int], ...]
) -> dict[str, np.ndarray]:
    """A record's answer for each of the draws, of which there may be none."""
    name, num_own = own[0]
    num_axes = np.ndim(draws[name]) - num_own
    leading = np.shape(draws[name])[:num_axes]
    if np.prod(leading):
        return of_each_draw(function, jax.tree.map(np.asarray, draws), num_axes)
    one = jax.tree.map(lambda leaf: np.zeros(leaf.shape[num_axes:], leaf.dtype), draws)
    form = jax.eval_shape(function, one)
    return jax.tree.map(lambda leaf: np.zeros((*leading, *leaf.shape), leaf.dtype), form)
