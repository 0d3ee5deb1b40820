"""What every gradient estimator offers."""

from typing import Any, Protocol

import jax

from amagold.core import trees
from amagold.core.randomness import Draw
from amagold.target import Target


class GradientEstimator(Protocol):
    """Draws for T steps, gathers the rows the draws name, and estimates grad U at a position from
    one step's rows.
    """

    @property
    def keeps_exactness(self) -> bool:
        """False when the draws of a trajectory are not as likely reversed, so that no test can make
        the sampler exact.
        """
        ...

    def check(self, target: Target, num_steps: int) -> None:
        """Raise when the estimator does not fit the target."""
        ...

    @property
    def draw_noise(self) -> Draw | None:
        """How one step's own noise is drawn; None where there is none."""
        ...

    def draw(self, key: jax.Array, target: Target, num_steps: int) -> Any:
        """Which examples the steps of a trajectory see, with the steps on the leading axis; empty
        when that is not random.
        """
        ...

    def gather(self, target: Target, draws: Any) -> Any:
        """The rows that the draws name, with the draws' leading axes."""
        ...

    def estimate(
        self, target: Target, position: trees.PyTree, rows: Any, noise: Any
    ) -> trees.PyTree:
        """The estimate of grad U at the position, from one step's rows and noise."""
        ...

    def num_examples(self, target: Target) -> int:
        """How many examples one estimate looks at."""
        ...
