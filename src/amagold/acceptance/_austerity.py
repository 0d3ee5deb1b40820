"""The t-test of Korattikara, Chen and Welling (2014), "Austerity in MCMC land": stop when the
mean's side of the threshold is significant.

The p-value of one look is below the error, but a test looks several times, keeps the first
significant look, and trusts in a normal mean: the chance of a wrong decision near the threshold is
several times the error, and larger where a few examples decide.
"""

from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.acceptance._differences import checked_order, differences_of
from amagold.acceptance._sequential_sampling import Seen, check_schedule, schedule
from amagold.acceptance._sequential_test import SequentialTest
from amagold.core import checks, trees
from amagold.core.array_types import Float32, Int
from amagold.core.shapes import Flag, Position, Scalar
from amagold.mode._reference import Reference
from amagold.target import Target, with_data


@trees.record()
class TTest:
    """Sure when |mean - mu| > t s: one critical value t for each look."""

    critical: Float32[Array, " looks"]

    def prepare(self, position: Position, proposed: Position) -> tuple[()]:
        return ()

    def is_sure(self, seen: Seen, distance: Scalar, num_examples: int, prepared: tuple[()]) -> Flag:
        # s^2 = (s_l^2 / m) (1 - (m - 1) / (N - 1)), s_l^2 the variance of the m differences seen
        left = (num_examples - seen.num_seen) / max(num_examples - 1, 1)
        return distance > self.critical[seen.num_looks] * jnp.sqrt(
            seen.variance * left / seen.num_seen
        )


@dataclass(frozen=True)
class Austerity:
    """The approximate t-test, before it knows its target."""

    error: float
    batch_size: int
    growth: float
    order: int
    center: trees.PyTree

    def bind(self, target: Target, reference: Reference | None = None) -> SequentialTest:
        """The test for a target; with control variates a pass or two over the data for the
        reference, unless the gradient has one.
        """
        posterior = with_data(target, "acceptance.austerity", "use acceptance.full()")
        differences = differences_of(posterior, self.order, self.center, reference)
        looks = schedule(posterior.num_examples, self.batch_size, self.growth)
        return SequentialTest(
            f"approximate (austerity, error {self.error:g})",
            differences,
            looks,
            TTest(_critical(looks.ends, self.error)),
        )


def austerity(
    error: float = 0.05,
    batch_size: int = 100,
    order: int | None = 2,
    center: trees.PyTree = None,
    *,
    growth: float = 2.0,
) -> Austerity:
    """An approximate test that looks at examples until a t-test says on which side of the threshold
    their mean lies.

    Args:
      error: the p-value below which a look ends the test, up to 0.5, which always ends the first.
      batch_size: examples before the first look, and in each block after it.
      order: of the Taylor polynomials about the reference that are subtracted from every example's
        energy; 0 or None: none are.
      center: the reference position. None takes that of the gradient's control variates, or the
        mode.
      growth: from one look to the next; 1 adds `batch_size` examples each time, as the paper does.
    """
    checks.number(
        "error", error, above=0.0, remedy="give the p-value that ends a test, such as 0.05"
    )
    if error > 0.5:
        raise ValueError(
            f"error must be at most 0.5, got {error:g}; 0.5 ends every test at its first look"
        )
    check_schedule(batch_size, growth)
    return Austerity(
        float(error), int(batch_size), float(growth), checked_order(order, center), center
    )


def _critical(ends: Int[Array, " looks"], error: float) -> Float32[Array, " looks"]:
    """The t value that is exceeded with a probability of `error`, for each look's number of
    examples less one.
    """
    from scipy.stats import t

    return jnp.asarray(t.isf(error, np.maximum(np.asarray(ends) - 1, 1)), jnp.float32)
