"""A proposal that stays where it is, for tests that move the chain themselves."""

from typing import Any, ClassVar

import jax.numpy as jnp

from amagold.core import trees
from amagold.core.shapes import Form, Scalar
from amagold.trajectory._phase import Gradient, Phase, Symmetry


@trees.record()
class Rest:
    """No step at all: it asks for no gradient, and does no work."""

    symmetry: ClassVar[Symmetry] = "reversible"
    refreshes_momentum: ClassVar[bool] = True
    draw: ClassVar[None] = None
    draw_momentum: ClassVar[None] = None

    def check(self, position: Form) -> None:
        return None

    def reverse(self, phase: Phase) -> Phase:
        return phase

    def step(self, phase: Phase, noise: Any, gradient: Gradient) -> tuple[Phase, Scalar]:
        return phase, jnp.float32(0.0)
