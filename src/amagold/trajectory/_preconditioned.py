"""Preconditioned SGLD's steps (Li et al., 2016): each parameter moves by its own scale, a fixed
function of the position, or learnt as the chain goes.

| symbol | name |
|---|---|
| theta | position |
| epsilon | step_size |
| G(theta), diagonal | preconditioner |
| V, alpha, lambda | the running average, decay, floor |
"""

from collections.abc import Callable
from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.core.randomness import normal_like
from amagold.core.shapes import Form, Leaf, Number, Position, RandomKey, Scalar
from amagold.trajectory._phase import Gradient, Phase, Symmetry


@trees.record()
class FrozenDiagonal:
    """The same positive numbers at every position."""

    diagonal: Any  # like the position, or one vector of all parameters

    def __call__(self, position: Position) -> Position:
        if isinstance(self.diagonal, jax.Array) and self.diagonal.shape == (trees.size(position),):
            return trees.unflatten_like(self.diagonal, position)
        return jax.tree.map(lambda at, by: jnp.broadcast_to(by, at.shape), position, self.diagonal)


@trees.record(functions=("preconditioner",))
class Preconditioned:
    """P(x, y; zeta) = N(y; x - (epsilon^2 / 2) G(x) grad U~(x), epsilon^2 G(x)). G may depend on
    the position, because the density includes it; not on anything that was seen on the way.
    """

    step_size: Number
    preconditioner: Callable[[Position], Position]

    draw = staticmethod(normal_like)

    def check(self, position: Form) -> None:
        try:
            given = jax.eval_shape(self.preconditioner, position)
            shapes, wanted = (jax.tree.map(jnp.shape, tree) for tree in (given, position))
        except (TypeError, ValueError) as reason:
            shapes, wanted = str(reason).split("\n")[0], jax.tree.map(jnp.shape, position)
        if shapes != wanted:
            raise ValueError(
                f"preconditioner must give one positive number per parameter, {wanted}, got "
                f"{shapes}; give a tree or a function whose values are like the position"
            )

    def propose(self, position: Position, noise: Position, gradient: Gradient) -> Position:
        scales = self.preconditioner(position)
        return _moved(position, gradient(position), scales, noise, self.step_size)

    def log_density(self, origin: Position, destination: Position, gradient: Gradient) -> Scalar:
        scales = self.preconditioner(origin)
        # log N(y; mean(x), epsilon^2 G(x)) = -(1/2) |xi|^2 - (1/2) sum log G(x) + constant
        error = jax.tree.map(
            lambda x, y, g, scale: (
                (y - x + 0.5 * self.step_size**2 * scale * g) / (self.step_size * jnp.sqrt(scale))
            ),
            origin,
            destination,
            gradient(origin),
            scales,
        )
        volume = jax.tree.reduce(jnp.add, jax.tree.map(lambda s: jnp.log(s).sum(), scales))
        return -0.5 * trees.dot(error, error) - 0.5 * volume


@trees.record()
class RunningPreconditioner:
    """Algorithm 1 of Li et al.: G = 1 / (lambda + sqrt(V)) from a running average V of squared
    gradients, which is kept where others keep a momentum.

    No test can follow: V remembers gradients along the way here, which the way back has not seen,
    and no density of V makes up for that.
    """

    step_size: Number
    decay: Number = 0.99
    floor: Number = 1e-3

    symmetry: ClassVar[Symmetry] = "none"
    refreshes_momentum: ClassVar[bool] = True
    draw = staticmethod(normal_like)

    def check(self, position: Form) -> None:
        return None

    def draw_momentum(
        self, key: RandomKey, position: Form, shape: tuple[int, ...] = ()
    ) -> Position:
        """V = 0: the first gradient is all there is."""
        return jax.tree.map(lambda leaf: jnp.zeros((*shape, *leaf.shape), leaf.dtype), position)

    def reverse(self, phase: Phase) -> Phase:
        return phase

    def scales(self, average: Position) -> Position:
        """G from V; what a run has learnt is `sampler.proposal.scales(state.momentum)`."""
        return jax.tree.map(lambda v: (1.0 / (self.floor + jnp.sqrt(v))).astype(v.dtype), average)

    def step(self, phase: Phase, noise: Position, gradient: Gradient) -> tuple[Phase, Scalar]:
        slope = gradient(phase.position)
        # V <- alpha V + (1 - alpha) grad U~ * grad U~
        average = jax.tree.map(
            lambda v, g: (self.decay * v + (1.0 - self.decay) * g * g).astype(v.dtype),
            phase.momentum,
            slope,
        )
        position = _moved(phase.position, slope, self.scales(average), noise, self.step_size)
        return Phase(position, average), jnp.float32(0.0)


def _moved(
    position: Position, slope: Position, scales: Position, noise: Position, step_size: Number
) -> Position:
    # theta' = theta - (epsilon^2 / 2) G g + epsilon sqrt(G) xi
    def move(at: Leaf, g: Leaf, scale: Leaf, error: Leaf) -> Leaf:
        push = 0.5 * step_size**2 * scale * g
        return (at - push + step_size * jnp.sqrt(scale) * error).astype(at.dtype)

    return jax.tree.map(move, position, slope, scales, noise)
