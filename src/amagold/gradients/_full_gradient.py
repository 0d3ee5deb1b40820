"""The exact gradient, over all examples."""

import jax

from amagold.core import trees
from amagold.core.shapes import Position, RandomKey, Scalar
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

    def draw(self, key: RandomKey, target: Target, num_steps: int) -> tuple[()]:
        return ()

    def gather(self, target: Target, draws: tuple[()]) -> tuple[()]:
        return ()

    def estimate(
        self, target: Target, position: Position, rows: tuple[()], noise: tuple[()]
    ) -> Position:
        return energy_gradient(target, position)

    def num_examples(self, target: Target) -> int:
        return target.num_examples


def energy_gradient(target: Target, position: Position) -> Position:
    """grad U(theta) = -grad log prior - sum_i grad log likelihood_i."""

    def visit(total: Position, chunk: Chunk) -> Position:
        def log_likelihood(at: Position) -> Scalar:
            return chunk.only_new(target.log_likelihoods(at, chunk.rows)).sum()

        return trees.add(total, jax.grad(log_likelihood)(position))

    return trees.negate(chunks.fold(target, position, visit, jax.grad(target.log_prior)(position)))


def full() -> Full:
    """The exact gradient of the energy."""
    return Full()
