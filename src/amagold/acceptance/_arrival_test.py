"""What exact tests on a few examples that arrive by their bounds have in common."""

from abc import abstractmethod
from typing import Any, ClassVar, NamedTuple

import jax
import jax.numpy as jnp

from amagold.acceptance._acceptance_test import Acceptance, Decision, RowNumbers
from amagold.acceptance._arrival_table import ArrivalTable
from amagold.acceptance._arrivals import (
    Arrivals,
    Draws,
    Look,
    Place,
    arrivals_of,
    conclude,
    count_arrivals,
    draw_test,
    none_counted,
)
from amagold.core.shapes import Flag, Position, RandomKey, Rows, Scalar
from amagold.target import Posterior, Target, with_data


class Question(NamedTuple):
    """What a test asks of the examples, of two positions."""

    there: Place  # the proposed one, as it would be remembered
    rate: Scalar  # candidates are looked at before this time of a Poisson process of rate one
    scans: Flag  # whether all data are looked at instead
    look: Look  # what a block of candidates says


class ArrivalTest(Acceptance):
    """Candidates come in blocks, the first of which depends on the test's randomness alone: rows of
    it can be brought before the chain is there.
    """

    name: ClassVar[str]
    uses_work = True
    is_count_fixed = False  # how many examples a test looks at is in its decision
    can_foresee = True

    table: ArrivalTable
    block_size: int

    @property
    def num_foreseen(self) -> int:
        """Candidates whose rows are brought ahead: few tests should need more, and each costs."""
        return self.block_size

    @property
    def horizon(self) -> Scalar:
        """Candidates that come later are not brought: few tests look so far."""
        return jnp.float32(jnp.inf)

    @abstractmethod
    def question(self, target: Posterior, memory: Any, proposed: Position) -> Question: ...

    def draw(self, key: RandomKey) -> Draws:
        return draw_test(key)

    def decide(
        self,
        target: Target,
        draws: Draws,
        memory: Place,
        proposed: Position,
        work: Scalar,
    ) -> Decision:
        posterior = self.with_data(target)
        log_uniform, key = draws
        there, rate, scans, look = self.question(posterior, memory, proposed)
        count = count_arrivals(posterior, rate, key, self.table.num_words, self.block_size, look)
        return conclude(posterior, log_uniform, memory, there, work, scans, count)

    def foresee(self, draws: Draws) -> tuple[Arrivals, RowNumbers]:
        """The first candidates, of those that `decide` would begin with."""
        block = arrivals_of(draws[1], jnp.int32(0), self.table.num_words, self.block_size)
        arrivals = jax.tree.map(lambda leaf: leaf[..., : self.num_foreseen], block)
        examples, _ = self.table.candidates(arrivals.words)
        comes_in_time = jnp.cumsum(arrivals.waiting_times) < self.horizon
        # a negative number is no row's
        return arrivals, jnp.where(comes_in_time & (examples < self.table.num_rows), examples, -1)

    def decide_from(
        self,
        foreseen: Arrivals,
        rows: Rows,
        target: Target,
        draws: Draws,
        memory: Place,
        proposed: Position,
        work: Scalar,
    ) -> tuple[Decision, Flag]:
        posterior = self.with_data(target)
        there, rate, scans, look = self.question(posterior, memory, proposed)
        count = look(none_counted(), foreseen._replace(rows=rows))
        decision = conclude(posterior, draws[0], memory, there, work, None, count)
        return decision, ~scans & ~(jnp.minimum(count.time, self.horizon) < rate)

    def num_examples(self, target: Target) -> int:
        return self.block_size

    def with_data(self, target: Target) -> Posterior:
        return with_data(target, f"acceptance.{self.name}", "use acceptance.full()")
