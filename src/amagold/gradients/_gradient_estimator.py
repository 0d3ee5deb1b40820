"""What every gradient estimator offers."""

from typing import Protocol, runtime_checkable

from amagold.batches import BatchPlan
from amagold.core import trees
from amagold.core.randomness import DrawFunction
from amagold.core.shapes import Batches, Flag, Position, RandomKey
from amagold.mode._reference import Reference
from amagold.target import Target


@runtime_checkable
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

    def draw(self, key: RandomKey, target: Target, num_steps: int) -> trees.PyTree:
        """Which examples the steps of a trajectory see, with the steps on the leading axis; empty
        when that is not random.
        """
        ...

    def gather(self, target: Target, draws: trees.PyTree) -> trees.PyTree:
        """The rows that the draws name, with the draws' leading axes."""
        ...

    def estimate(
        self, target: Target, position: Position, rows: trees.PyTree, noise: trees.PyTree
    ) -> Position:
        """The estimate of grad U at the position, from one step's rows and noise."""
        ...

    def num_examples(self, target: Target) -> int:
        """How many examples one estimate looks at."""
        ...

    # what most estimators have no need to say: theirs are these

    @property
    def draw_noise(self) -> DrawFunction | None:
        """How one step's own noise is drawn; None where there is none."""
        return None

    def bind(self, target: Target) -> "GradientEstimator":
        """The estimator with what it must know of the target beforehand, such as sums over all
        data.
        """
        return self

    def known_reference(self) -> Reference | None:
        """What it knows of all data about one position, which a test may share; a checkpoint keeps
        it.
        """
        return None

    def batching(self) -> tuple[int, BatchPlan] | None:
        """Examples per step, and the plan of the batches; None where there are none."""
        return None

    @property
    def can_foresee(self) -> bool:
        """Whether the examples that it will look at follow from its draws alone."""
        return self.batching() is not None and not self.is_external

    @property
    def is_external(self) -> bool:
        """Whether batches come from outside, by `arrange`."""
        return False

    def arrange(self, coin: Flag, batches: Batches) -> Batches:
        """An outside loader's T batches in the order that the trajectory sees them in."""
        return batches
