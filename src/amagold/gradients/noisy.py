"""The exact gradient plus normal noise: the paper's stand-in for minibatches on targets without data."""

from typing import Any

import jax

from amagold import trees
from amagold.gradients.full import Full
from amagold.randomness import draw_steps, resolve
from amagold.target import Target, checks


@trees.record()
class Noisy:
    """grad U~(theta) = grad U(theta) + N(0, scale^2 I)."""

    scale: jax.Array | float

    @property
    def keeps_exactness(self) -> bool:
        return True

    def check(self, target: Target, num_steps: int) -> None:
        pass

    def draw(self, key: jax.Array, target: Target, position: trees.PyTree, num_steps: int, late: bool) -> Any:
        return draw_steps(trees.normal_like, key, position, num_steps, late)

    def gather(self, target: Target, draws: Any) -> Any:
        return draws

    def estimate(self, target: Target, position: trees.PyTree, rows: Any) -> trees.PyTree:
        noise = resolve(trees.normal_like, rows, position)
        gradient = Full().estimate(target, position, ())
        return jax.tree.map(lambda exact, error: exact + self.scale * error, gradient, noise)

    def num_examples(self, target: Target) -> int:
        return Full().num_examples(target)


def noisy(scale: float) -> Noisy:
    """The exact gradient plus N(0, scale^2 I), drawn afresh at every step."""
    checks.number("scale", scale, at_least=0.0, remedy="give the standard deviation of the noise")
    return Noisy(scale)
