"""The exact gradient, over all examples."""

from typing import Any

import jax

from amagold.core import trees
from amagold.data import Chunk
from amagold.energy import _chunks as chunks
from amagold.gradients._gradient_estimator import GradientEstimator
from amagold.target import Target


@trees.record()
class Full(GradientEstimator):
    """grad U from all examples, a chunk at a time."""

    @property
    def keeps_exactness(self) -> bool:
        return True

    def check(self, target: Target, num_steps: int) -> None:
        pass

    def draw(self, key: jax.Array, target: Target, num_steps: int) -> tuple[()]:
        return ()

    def gather(self, target: Target, draws: tuple[()]) -> tuple[()]:
        return ()

    def estimate(
        self, target: Target, position: trees.PyTree, rows: Any, noise: Any
    ) -> trees.PyTree:
        return energy_gradient(target, position)

    def num_examples(self, target: Target) -> int:
        return target.num_examples


def energy_gradient(target: Target, position: trees.PyTree) -> trees.PyTree:
    """grad U(theta) = -grad log prior - sum_i grad log likelihood_i."""

    def visit(total: trees.PyTree, chunk: Chunk) -> trees.PyTree:
        def log_likelihood(at: trees.PyTree) -> jax.Array:
            return chunk.only_new(target.log_likelihoods(at, chunk.rows)).sum()

        return trees.add(total, jax.grad(log_likelihood)(position))

    return trees.negate(chunks.fold(target, position, visit, jax.grad(target.log_prior)(position)))


def full() -> Full:
    """The exact gradient of the energy."""
    return Full()
