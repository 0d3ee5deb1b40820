"""The confidence sampler of Bardenet, Doucet and Holmes (2014, 2017): stop when a concentration
bound puts the mean on one side.

After m of N examples without replacement, with probability 1 - delta (empirical Bernstein-Serfling;
Bardenet and Maillard, 2015)

    |mean_m - mean| <= s_m (2 rho_m log(10 / delta) / m)^(1/2) + kappa R log(10 / delta) / m,
    kappa = 7/3 + 3 / 2^(1/2),

where R is the range of the D_i, s_m their standard deviation, and rho_m falls to zero at m = N. The
k-th look has delta_k = error / (2 k^2), which add up to less than the error: a bound on every wrong
decision, with no normal law in it, if R is one.
"""

import contextlib
import math
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.acceptance._bounds_agreement import check_agreement
from amagold.acceptance._differences import Differences, checked_order, differences_of
from amagold.acceptance._sequential_sampling import Seen, check_schedule, schedule
from amagold.acceptance._sequential_test import SequentialTest
from amagold.core import checks, trees
from amagold.core.array_types import Float32
from amagold.core.shapes import Flag, Matrix, Position, Scalar, Vector
from amagold.mode._derivatives import whole_hessian
from amagold.mode._reference import Reference
from amagold.mode._row_bounds import Norm, TaylorBound, bound_sums
from amagold.target import Posterior, Target, with_data
from amagold.target._linear_bounds import LinearBounds

KAPPA = 7.0 / 3.0 + 3.0 / math.sqrt(2.0)


@trees.record(static=("order", "bounds", "is_scalar"))
class Range:
    """R = 2 max_i c_i M(theta, theta*), because |D_i| <= c_i M."""

    order: int
    bounds: LinearBounds
    is_scalar: bool  # whether an example's predictor is one number
    whitening: Matrix  # L^T: distances are lengths of L^T (theta - reference)
    center: Vector
    weight: Scalar  # the largest c_i
    largest: Scalar  # of the a_i

    def __call__(self, position: Position, proposed: Position) -> Scalar:
        here, there = (
            self.whitening @ (trees.flatten(at) - self.center) for at in (position, proposed)
        )
        distance, reach, other = (jnp.linalg.norm(v) for v in (here - there, here, there))
        return (
            2.0
            * self.weight
            * self.bounds.magnitude(
                self.order,
                distance,
                reach,
                other,
                self.largest,
                is_scalar=self.is_scalar,
                radius=self.bounds.radius(self.center.shape[0]),
            )
        )


@trees.record()
class Bernstein:
    """Sure when |mean - mu| exceeds the bound."""

    logarithms: Float32[Array, " looks"]  # log(10 / delta_k) of each look
    range: Range | None  # None: measured from the examples seen, which no theorem covers

    def prepare(self, position: Position, proposed: Position) -> Scalar:
        return jnp.float32(0.0) if self.range is None else self.range(position, proposed)

    def is_sure(self, seen: Seen, distance: Scalar, num_examples: int, prepared: Scalar) -> Flag:
        count, logarithm = seen.num_seen.astype(jnp.float32), self.logarithms[seen.num_looks]
        # rho_m = 1 - (m - 1) / N up to half of the data, (1 - m / N)(1 + 1 / m) after it
        early, late = (
            (num_examples - count + 1.0) / num_examples,
            (num_examples - count) / num_examples * (1.0 + 1.0 / count),
        )
        shrinking = jnp.where(2.0 * count <= num_examples, early, late)
        # what was seen is in the range, whatever the bounds say
        width = jnp.maximum(prepared, seen.largest - seen.smallest)
        spread = jnp.sqrt(2.0 * seen.squares / count * shrinking * logarithm / count)
        return distance > spread + KAPPA * width * logarithm / count


@dataclass(frozen=True)
class Confidence:
    """The confidence sampler's test, before it knows its target."""

    error: float
    batch_size: int
    growth: float
    order: int
    center: trees.PyTree

    def bind(self, target: Target, reference: Reference | None = None) -> SequentialTest:
        """The test for a target: passes over the data for the reference, unless the gradient has
        one, and for the bounds.
        """
        posterior = with_data(target, "acceptance.confidence", "use acceptance.full()")
        differences = differences_of(posterior, self.order, self.center, reference)
        looks = schedule(posterior.num_examples, self.batch_size, self.growth)
        # delta_k = error (p - 1) / (p k^p) with p = 2
        shares = self.error / (2.0 * np.arange(1, len(looks.ends) + 1) ** 2)
        known = _range_of(posterior, differences)
        label = (
            "approximate (confidence, error "
            f"{self.error:g}{', range measured' if known is None else ''})"
        )
        return SequentialTest(
            label,
            differences,
            looks,
            Bernstein(jnp.asarray(np.log(10.0 / shares), jnp.float32), known),
        )


def confidence(
    error: float = 0.1,
    batch_size: int = 100,
    order: int | None = 2,
    center: trees.PyTree = None,
    *,
    growth: float = 2.0,
) -> Confidence:
    """An approximate test that looks at examples until a concentration bound says on which side of
    the threshold their mean lies.

    The bound needs the range of the examples' differences. It comes from the target's bounds;
    without them the range of the examples seen is taken, and the label says so.

    Args:
      error: delta, the chance that a test decides otherwise than with all data.
      batch_size: examples before the first look, and in each block after it.
      order: of the Taylor polynomials about the reference that are subtracted from every example's
        energy; 0 or None: none are.
      center: the reference position. None takes that of the gradient's control variates, or the
        mode.
      growth: from one look to the next.
    """
    checks.number(
        "error", error, above=0.0, remedy="give the chance of a wrong decision, such as 0.1"
    )
    if error >= 1.0:
        raise ValueError(
            f"error must be below 1, got {error:g}; it is the chance of a wrong decision, such as "
            "0.1"
        )
    check_schedule(batch_size, growth)
    return Confidence(
        float(error), int(batch_size), float(growth), checked_order(order, center), center
    )


def _range_of(target: Posterior, differences: Differences) -> Range | None:
    """From the target's bounds, in the norm of the Hessian where that is known and plain length
    where it is not; None without bounds.
    """
    bounds, reference = differences.bounds, differences.reference
    center = target.init if reference is None else reference.position
    if bounds is None or center is None or math.isinf(bounds.derivatives[differences.order]):
        return None
    if reference is None:  # else it was done with the differences
        check_agreement(target, bounds, center)
    flat = trees.flatten(center)
    factor = np.eye(len(flat))
    if reference is not None and reference.hessian is not None:
        with contextlib.suppress(
            np.linalg.LinAlgError
        ):  # where the energy does not curve upwards, plain length will do
            factor = np.linalg.cholesky(whole_hessian(target, center, reference.hessian))
    norm = Norm.of_factor(factor)
    sums = bound_sums(target, center, TaylorBound(bounds, differences.order, center, norm))
    is_scalar = bounds.is_scalar(center, target.example)
    return Range(
        differences.order,
        bounds,
        is_scalar,
        jnp.asarray(factor.T, jnp.float32),
        flat,
        sums.of_slots.max(),
        sums.largest_norm,
    )
