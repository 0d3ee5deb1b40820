"""What every gradient estimator offers."""

from typing import Any, Protocol

import jax

from amagold import trees
from amagold.target import Target


class GradientEstimator(Protocol):
    """Draws for T steps, gathers the rows the draws name, and estimates grad U at a position from one step's rows."""

    @property
    def keeps_exactness(self) -> bool:
        """False when the draws of a trajectory are not as likely reversed, so that no test can make the sampler exact."""
        ...

    def check(self, target: Target, num_steps: int) -> None:
        """Raise when the estimator does not fit the target."""
        ...

    def draw(self, key: jax.Array, target: Target, position: trees.PyTree, num_steps: int, late: bool) -> Any:
        """The randomness of a trajectory, with the steps on the leading axis; with `late`, keys in place of large noise."""
        ...

    def gather(self, target: Target, draws: Any) -> Any:
        """The rows that the draws name, with the draws' leading axes."""
        ...

    def estimate(self, target: Target, position: trees.PyTree, rows: Any) -> trees.PyTree:
        """The estimate of grad U at the position, from one step's rows."""
        ...

    def num_examples(self, target: Target) -> int:
        """How many examples one estimate looks at."""
        ...
