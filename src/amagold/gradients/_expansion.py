"""The gradient of the data's expansion about one position, which reads no example.

    grad U^(theta) = -grad log prior + T'(theta)

where T is the Taylor polynomial of second order of -log likelihood of all data. It is a fixed
function of the position, so that a trajectory with it is as reversible as with the gradient itself;
the test pays for what it leaves out, which shrinks like 1 / sqrt(N). Rows of rare levels, which are
few and badly described by it, may be looked at nevertheless (`RareRows`).
"""

import dataclasses

import jax
import jax.numpy as jnp

from amagold.core import trees
from amagold.core.shapes import Position, RandomKey, Vector
from amagold.gradients._gradient_estimator import GradientEstimator
from amagold.mode._rare_rows import RareRows
from amagold.mode._reference import Reference, reference_of
from amagold.target import Target, with_data

ORDER = 2


@trees.record()
class Expansion(GradientEstimator):
    """Exact under a test, because the reference never moves; without one, draws are those of the
    expansion.
    """

    center: Position | None = None  # where the reference will be taken; None: at the mode
    reference: Reference | None = None
    # the mean slope of what it leaves out, where that is known: draws then lie about the mean
    tilt: Vector | None = None
    rare: RareRows | None = None  # rows that are looked at nevertheless

    @property
    def keeps_exactness(self) -> bool:
        return True

    def check(self, target: Target, num_steps: int) -> None:
        with_data(target, "gradients.expansion", "use gradients.full()")

    def bind(self, target: Target) -> "Expansion":
        """The same with its reference: two passes over the data, and the search for the mode if no
        center was given.
        """
        if self.reference is not None:
            return self
        reference = reference_of(target, self.center, ORDER)
        return dataclasses.replace(self, reference=reference, center=None)

    @property
    def can_foresee(self) -> bool:
        return True  # it reads nothing

    def known_reference(self) -> Reference | None:
        return self.reference

    def draw(self, key: RandomKey, target: Target, num_steps: int) -> tuple[()]:
        return ()

    def gather(self, target: Target, draws: tuple[()]) -> tuple[()]:
        return ()

    def estimate(
        self, target: Target, position: Position, rows: tuple[()], noise: tuple[()]
    ) -> Position:
        reference = self.reference
        assert reference is not None
        known = reference.taylor_gradient(reference.away(position), ORDER)
        if self.tilt is not None:
            known = known + self.tilt
        if self.rare is not None:
            known = known + self.rare.gradient(position)
        prior = jax.grad(target.log_prior)(position)
        return jax.tree.map(jnp.subtract, trees.unflatten_like(known, position), prior)

    def num_examples(self, target: Target) -> int:
        return 0 if self.rare is None else self.rare.num_rows


def expansion(center: trees.PyTree = None) -> Expansion:
    """The gradient of the data's second-order expansion, which reads no example: for posteriors so
    nearly Gaussian that the test alone is worth reading for.

    Args:
      center: the reference position, fixed for good. None searches the mode from the target's
        `init`.
    """
    return Expansion(None if center is None else trees.as_position(center))
