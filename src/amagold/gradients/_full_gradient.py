"""The exact gradient, over all examples."""

from typing import Any

import jax

from amagold.core import trees
from amagold.energy import _chunks as chunks
from amagold.target import Posterior, Target


@trees.record()
class Full:
    """grad U from all examples, a chunk at a time."""

    @property
    def keeps_exactness(self) -> bool:
        return True

    def check(self, target: Target, num_steps: int) -> None:
        pass

    draw_noise = None

    def draw(self, key: jax.Array, target: Target, num_steps: int) -> tuple[()]:
        return ()

    def gather(self, target: Target, draws: tuple[()]) -> tuple[()]:
        return ()

    def estimate(
        self, target: Target, position: trees.PyTree, rows: Any, noise: Any
    ) -> trees.PyTree:
        return energy_gradient(target, position)

    def num_examples(self, target: Target) -> int:
        return target.num_examples if isinstance(target, Posterior) else 0


def energy_gradient(target: Target, position: trees.PyTree) -> trees.PyTree:
    """grad U(theta) = -grad log prior - sum_i grad log likelihood_i."""
    if not isinstance(target, Posterior):
        return trees.negate(jax.grad(target.log_density)(position))

    def visit(
        total: trees.PyTree, rows: trees.PyTree, start: Any, is_new: jax.Array | None
    ) -> trees.PyTree:
        def log_likelihood(at: trees.PyTree) -> jax.Array:
            values = target.log_likelihoods(at, rows)
            return values.sum() if is_new is None else (values * is_new).sum()

        return trees.add(total, jax.grad(log_likelihood)(position))

    return trees.negate(chunks.fold(target, position, visit, jax.grad(target.log_prior)(position)))


def full() -> Full:
    """The exact gradient of the energy."""
    return Full()
