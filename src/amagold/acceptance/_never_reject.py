"""No test at all: biased."""

import jax.numpy as jnp

from amagold.acceptance._acceptance_test import Acceptance, Decision
from amagold.core import trees
from amagold.core.shapes import Position, RandomKey, Scalar
from amagold.target import Target


@trees.record()
class NeverReject(Acceptance):
    """Every proposal becomes the next state, as in SGHMC and SGLD. Draws are biased at any fixed
    step size.
    """

    label = "biased"
    uses_work = False
    can_foresee = True  # it reads nothing

    def draw(self, key: RandomKey) -> tuple[()]:
        return ()

    def remember(self, target: Target, position: Position) -> tuple[()]:
        return ()

    def decide(
        self,
        target: Target,
        draws: tuple[()],
        memory: tuple[()],
        proposed: Position,
        work: Scalar,
    ) -> Decision:
        return Decision(jnp.bool_(True), jnp.float32(0.0), ~trees.all_finite(proposed), ())

    def num_examples(self, target: Target) -> int:
        return 0


def never_reject() -> NeverReject:
    """No Metropolis-Hastings test: the biased samplers' choice."""
    return NeverReject()
