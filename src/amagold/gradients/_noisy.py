"""The exact gradient plus normal noise: the paper's stand-in for minibatches on targets without
data.
"""

import jax

from amagold.core import checks, trees
from amagold.core.randomness import DrawFunction, normal_like
from amagold.core.shapes import Number, Position, RandomKey
from amagold.gradients._full_gradient import Full, energy_gradient
from amagold.gradients._gradient_estimator import GradientEstimator
from amagold.target import Target


@trees.record()
class Noisy(GradientEstimator):
    """grad U~(theta) = grad U(theta) + N(0, scale^2 I)."""

    scale: Number

    @property
    def keeps_exactness(self) -> bool:
        return True

    def check(self, target: Target, num_steps: int) -> None:
        pass

    @property
    def draw_noise(self) -> DrawFunction:
        return normal_like

    def draw(self, key: RandomKey, target: Target, num_steps: int) -> tuple[()]:
        return ()

    def gather(self, target: Target, draws: tuple[()]) -> tuple[()]:
        return ()

    def estimate(
        self, target: Target, position: Position, rows: tuple[()], noise: Position
    ) -> Position:
        gradient = energy_gradient(target, position)
        return jax.tree.map(lambda exact, error: exact + self.scale * error, gradient, noise)

    def num_examples(self, target: Target) -> int:
        return Full().num_examples(target)


def noisy(scale: float) -> Noisy:
    """The exact gradient plus N(0, scale^2 I), drawn afresh at every step."""
    checks.number("scale", scale, at_least=0.0, remedy="give the standard deviation of the noise")
    return Noisy(scale)
