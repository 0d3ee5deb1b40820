"""What the exact test on a few examples must know beforehand: the reference, every example's bound,
and a table to draw them from.
"""

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.acceptance._arrival_table import arrival_table, sums_of
from amagold.acceptance._bounds_agreement import check_agreement
from amagold.acceptance._level_setup import has_levels, level_test
from amagold.acceptance._level_test import LevelTest
from amagold.acceptance._remainders import remainder_differences
from amagold.acceptance._tuna import TunaTest
from amagold.core import checks, trees
from amagold.core.array_types import Float
from amagold.core.compiling import ONCE, jit
from amagold.core.shapes import Position, RandomKey, Scalar
from amagold.mode._derivatives import KnownBounds, whole_hessian
from amagold.mode._mode_search import bounds_about
from amagold.mode._reference import Reference, reference_of
from amagold.mode._row_bounds import BoundSums, Norm, TaylorBound, bound_sums, rows_per_slot
from amagold.target import Posterior, Target, with_data
from amagold.target._linear_bounds import LinearBounds

SPARE, MANY_TIMES = 8, 3  # candidates foreseen, and times as many as a typical test looks at
NUM_PAIRS, NUM_ROWS = 64, 256  # that the typical share of the bounds is measured from


class UnboundedError(ValueError):
    """An example has no bound."""


@dataclass(frozen=True)
class Tuna:
    """An exact test on a few examples, before it knows its target."""

    order: int
    center: Position | None
    block_size: int
    noise: float
    bounds: LinearBounds | None
    most: float | None

    def bind(
        self,
        target: Target,
        reference: Reference | None = None,
        known: KnownBounds | None = None,
    ) -> TunaTest | LevelTest:
        """The test for a target: passes over the data for the reference, unless the gradient has
        one, and for the bounds, unless they are known about that reference.
        """
        target = with_data(target, "acceptance.tuna", "use acceptance.full()")
        bounds = self.bounds or target.bounds
        if bounds is None:
            raise ValueError(
                "bounds must be known for acceptance.tuna, but the target has none; give "
                "Posterior(..., bounds=amagold.LinearBounds(...)), write the likelihood as an "
                "amagold.LinearLikelihood, whose bounds are found, "
                "use one of amagold.models, or acceptance.full()"
                + "".join(f". {note}" for note in target.notes if note.startswith("No bounds"))
            )
        if math.isinf(bounds.derivatives[self.order]):
            raise ValueError(
                f"order must be another than {self.order} for this target, whose derivative "
                f"{self.order + 1} has no bound; use order=2"
            )
        if reference is None or reference.hessian is None or self.center is not None:
            reference = reference_of(
                target,
                reference.position
                if self.center is None and reference is not None
                else self.center,
                2,
            )
        check_agreement(target, bounds, reference.position)
        if has_levels(target, bounds, self.order):
            return level_test(target, bounds, reference, self.most)
        if known is None or (known.bound.bounds, known.bound.order) != (bounds, self.order):
            known = _bounds_of(target, bounds, self.order, reference)
        bound, sums = known
        _check_finite(sums, bounds, trees.size(reference.position), target.num_examples)
        test = TunaTest(
            order=self.order,
            block_size=self.block_size,
            bounds=bounds,
            is_scalar=bounds.is_scalar(reference.position, target.example),
            reference=reference,
            largest=sums.largest_norm,
            table=arrival_table(sums, bound, target.num_examples),
            spread=_number(0.0),
            noise=_number(self.noise),
            typical=_number(0.0),
            most=_number(target.num_examples if self.most is None else self.most),
        )
        return _measured(target, test)


def tuna(
    order: int = 2,
    center: trees.PyTree = None,
    *,
    block_size: int = 16,
    noise: float = 0.05,
    bounds: LinearBounds | None = None,
    most: float | None = None,
) -> Tuna:
    """The exact test on a few examples (generalised TunaMH); it needs a target that knows its
    bounds.

    Args:
      order: of the Taylor polynomials about the reference, 0, 1 or 2; the count per test falls with
        it.
      center: the reference position, fixed for good. None takes that of the gradient's control
        variates, or the mode.
      block_size: arrivals looked at together; a test that needs more takes more blocks.
      noise: the variance that the draws of examples may bring to log a.
      bounds: instead of the target's own.
      most: examples above which a test looks at all data instead; None is their number.
    """
    if order not in (0, 1, 2):
        raise ValueError(f"order must be 0, 1 or 2, got {order!r}")
    checks.whole_number(
        "block_size",
        block_size,
        at_least=1,
        remedy="give the arrivals looked at together; 16 is usual",
    )
    checks.number(
        "noise", noise, above=0.0, remedy="give the variance of log a to allow; 0.05 costs little"
    )
    return Tuna(
        int(order),
        None if center is None else trees.as_position(center),
        int(block_size),
        float(noise),
        bounds,
        most,
    )


def _bounds_of(
    target: Posterior, bounds: LinearBounds, order: int, reference: Reference
) -> KnownBounds:
    """In the norm of the Hessian at the reference: a pass over the data."""
    hessian = whole_hessian(target, reference.position, reference.hessian)
    try:
        norm = Norm.of_matrix(hessian)
    except np.linalg.LinAlgError:
        raise ValueError(
            "center must be a mode for acceptance.tuna, but the energy does not curve upwards "
            "there; give another"
        ) from None
    return bounds_about(target, TaylorBound(bounds, order, reference.position, norm))


def _check_finite(
    sums: BoundSums, bounds: LinearBounds, num_parameters: int, num_examples: int
) -> None:
    """Raise where an example has no bound within the radius."""
    is_open = ~np.isfinite(np.asarray(sums.of_slots))
    if is_open.any():
        example = int(is_open.argmax()) * rows_per_slot(num_examples)
        raise UnboundedError(
            f"bounds must be finite for acceptance.tuna, but none was found for example {example} "
            f"within {bounds.radius(num_parameters):.3g} standard deviations of the reference: "
            "its log likelihood may leave its domain there, or switch between formulas as "
            "jnp.where, jnp.maximum and jnp.abs of a predictor do; write it with smooth functions "
            "(jax.nn.softplus, jnp.logaddexp), or use acceptance.full()"
        )


def with_more(test: TunaTest, target: Posterior, new: Posterior, reference: Reference) -> TunaTest:
    """The test for a target of more examples, of which the last are those of `new`: a pass over
    these alone. The reference is of all of them, at the position where it was.
    """
    bound, before = test.table.bound, test.table.num_rows
    known = sums_of(test.table, target.num_examples)
    added = bound_sums(new, reference.position, bound, before)
    sums = known._replace(largest_norm=test.largest).plus(added)
    _check_finite(sums, test.bounds, trees.size(reference.position), target.num_examples)
    was_usual = float(test.most) == float(np.float32(before))
    grown = dataclasses.replace(
        test,
        reference=reference,
        largest=sums.largest_norm,
        table=arrival_table(sums, bound, target.num_examples),
        most=_number(target.num_examples) if was_usual else test.most,
    )
    return _measured(target, grown)


def _measured(target: Posterior, test: TunaTest) -> TunaTest:
    """The test with how many examples it should look at."""
    # kappa = r2 C M / v, where r2 is the mean square of D_i / (c_i M): the noise of log a then
    # has variance v
    found = _typical(target, test)
    share, needed = (np.asarray(part, np.float32) for part in found)
    spread = share / np.float32(test.noise)
    # infinite beyond the radius of the bounds, where all data are looked at
    needed = np.minimum(needed, np.float32(test.most))
    # kappa C M and the candidates that do not arrive, or all data
    read = np.maximum(1.0, spread * needed) * needed * float(test.table.excess)
    typical = np.mean(np.minimum(read, float(test.most)))
    # their number varies like a Poisson number, and with the two positions; even, so that little
    # else makes another program
    usual = 2 * math.ceil((SPARE + MANY_TIMES * typical) / 2)
    return dataclasses.replace(test, spread=_number(spread), typical=_number(typical), usual=usual)


def _number(value: Any) -> Scalar:
    return jax.device_put(np.float32(value))


@jit(ONCE)
def _typical(target: Posterior, test: TunaTest) -> tuple[Scalar, Float[Array, " pairs"]]:
    """r2 = E[(D_i / (c_i M))^2] over examples drawn by their bounds and pairs of positions from the
    Laplace approximation, and the C M.
    """
    like = test.reference.position

    def one(key: RandomKey) -> tuple[Scalar, Scalar]:
        place_key, turn_key, row_key = jax.random.split(key, 3)
        size = trees.size(like)
        here = jax.random.normal(place_key, (size,))
        there = math.cos(1.5) * here + math.sin(1.5) * jax.random.normal(turn_key, (size,))
        position, proposed = (
            trees.unflatten_like(trees.flatten(like) + test.norm.unwhitening.T @ at, like)
            for at in (here, there)
        )
        magnitude = test._magnitude(
            test.remember(target, position), test.remember(target, proposed)
        )
        numbers, weights = test.table.some(row_key, NUM_ROWS)
        rows = target.examples.rows(numbers)
        differences = remainder_differences(
            test.bounds, test.reference, test.order, position, proposed, rows
        )
        own = test.table.own_weights(weights, rows)
        bounds = own * magnitude
        shares = jnp.where(bounds > 0, differences / jnp.where(bounds > 0, bounds, 1.0), 0.0)
        # candidates arrive with probability c_i / c_s
        arrive = jnp.where(weights > 0, own / jnp.where(weights > 0, weights, 1.0), 0.0)
        smallest = jnp.finfo(arrive.dtype).tiny
        share = jnp.sum(arrive * shares**2) / jnp.maximum(jnp.sum(arrive), smallest)
        return share, test.table.total * magnitude

    shares, needed = jax.lax.map(one, jax.random.split(jax.random.key(0), NUM_PAIRS))
    return jnp.mean(shares), needed
