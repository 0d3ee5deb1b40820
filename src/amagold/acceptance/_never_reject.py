"""No test at all: biased."""

import jax
import jax.numpy as jnp

from amagold.acceptance._acceptance_test import Decision
from amagold.core import trees
from amagold.target import Target


@trees.record()
class NeverReject:
    """Every proposal becomes the next state, as in SGHMC and SGLD. Draws are biased at any fixed
    step size.
    """

    @property
    def label(self) -> str:
        return "biased"

    @property
    def uses_work(self) -> bool:
        return False

    def draw(self, key: jax.Array) -> tuple[()]:
        return ()

    def remember(self, target: Target, position: trees.PyTree) -> tuple[()]:
        return ()

    def energy(self, memory: tuple[()]) -> tuple[()]:
        return ()

    def decide(
        self,
        target: Target,
        draws: tuple[()],
        memory: tuple[()],
        proposed: trees.PyTree,
        work: jax.Array,
    ) -> Decision:
        return Decision(jnp.bool_(True), jnp.float32(0.0), ~trees.all_finite(proposed), ())

    def num_examples(self, target: Target) -> int:
        return 0


def never_reject() -> NeverReject:
    """No Metropolis-Hastings test: the biased samplers' choice."""
    return NeverReject()
