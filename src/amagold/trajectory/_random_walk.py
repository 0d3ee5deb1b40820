"""The shortest proposal there is, and the one to copy when writing a new one."""

from typing import NamedTuple

import jax

from amagold.core.randomness import normal_like
from amagold.core.shapes import Number, Position, Scalar
from amagold.trajectory._phase import Gradient


class RandomWalk(NamedTuple):
    """P(x, y) = N(y; x, scale^2 I). Symmetric, so its log density is the same both ways and may be
    left at zero.
    """

    scale: Number

    draw = staticmethod(normal_like)

    def propose(self, position: Position, noise: Position, gradient: Gradient) -> Position:
        return jax.tree.map(lambda at, by: (at + self.scale * by).astype(at.dtype), position, noise)

    def log_density(self, origin: Position, destination: Position, gradient: Gradient) -> Scalar:
        return jax.numpy.float32(0.0)
