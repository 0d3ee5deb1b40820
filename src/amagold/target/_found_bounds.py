"""Bounds that are found, not proved by hand: how large an outcome's derivatives can be within a
ball about the reference.

| symbol | meaning |
|---|---|
| f(z) | one example's log likelihood, of its predictors z = z_ref + A (theta - ref) |
| H = L L^T | the Hessian at the reference: distances are \\|v\\|^2 = v . H v |
| R | the radius: positions are compared by the bound within \\|theta - ref\\| <= R |
| S S^T >= A H^-1 A^T | S is triangular, as large as z has numbers |

z = z_ref + S w with |w| <= |theta - ref|, and the same holds of changes. So w stays within the ball
of radius R, and c_i is the largest derivative of f with respect to w there, along any unit vector:
its length as a tensor. Jets over boxes that cover the ball hold all its values.
"""

import itertools
import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
from jax import Array

from amagold.core import trees
from amagold.target._intervals import Span, add, multiply, point
from amagold.target._jet_program import on_jets
from amagold.target._jet_rules import NotCoveredError
from amagold.target._jets import Jet, Space

# boxes along each axis, by the number of predictors: narrower boxes, tighter bounds
NUM_BOXES = {1: 6, 2: 2, 3: 2}
SLACK = 1e-4  # of a bound: the predictors themselves are rounded
SPARE = 6.0  # standard deviations that a position may be farther out than is typical


class OutcomeOfNumbers(Protocol):
    """A log likelihood, of the predictors one by one."""

    def of_numbers(self, numbers: list[Any], example: trees.PyTree) -> Array: ...


@dataclass(frozen=True)
class FoundSize:
    """The largest derivative of an outcome within a ball, by intervals; infinite where none is
    known.
    """

    outcome: OutcomeOfNumbers
    spare: float = SPARE

    def radius(self, num_parameters: int) -> float:
        """R: of a Gaussian posterior less than one position in 10^8 is farther out than
        sqrt(d) + 6.
        """
        return math.sqrt(num_parameters) + self.spare

    def __call__(
        self, z: Array, example: trees.PyTree, rows: Array, radius: float, order: int
    ) -> Array:
        """c_i of remainders of this order.

        Args:
          z: the predictors at the reference, a number or a vector.
          example: one example.
          rows: A L^-T, a row for each of the predictors.
          radius: R.
          order: of the Taylor polynomial: the derivative is the next.
        """
        flat = jnp.atleast_1d(z)
        spread = _spread(rows)
        boxes = jnp.asarray(_boxes(len(flat), radius), flat.dtype)

        def visit(largest: Array, box: Array) -> tuple[Array, None]:
            size = self._largest(flat, example, spread, box, order)
            return jnp.maximum(largest, size), None  # NaN stays NaN

        largest, _ = jax.lax.scan(visit, jnp.zeros((), flat.dtype), boxes)
        return jnp.where(jnp.isfinite(largest), (1.0 + SLACK) * largest, jnp.inf)

    def _largest(
        self,
        z: Array,
        example: trees.PyTree,
        spread: list[list[Array]],
        box: Array,
        order: int,
    ) -> Array:
        """Over one box of w."""
        space = Space(len(z), order + 1)
        jets = []
        for own, row in zip(z, spread, strict=True):
            value = point(own)
            parts = {}
            for place, entry in enumerate(row):
                value = add(value, multiply(point(entry), Span(box[0, place], box[1, place])))
                parts[(place,)] = point(entry)
            jets.append(Jet(space, {(): value} | parts))
        found = on_jets(self.outcome.of_numbers, space, [jets, example])
        total: Array = jnp.zeros((), z.dtype)
        for index in itertools.product(range(len(z)), repeat=order + 1):
            part = found.parts.get(tuple(sorted(index)))
            if part is not None:
                total += part.largest**2
        # rooted after it is widened, so that no square is lost
        return jnp.sqrt(total * (1.0 + 1e-6)) if len(z) > 1 else _one(found, order + 1)


def why_not(outcome: OutcomeOfNumbers, num_predictors: int, example: trees.PyTree) -> str | None:
    """What operation of an outcome is not covered, in words; None where all are."""

    def trace(example: trees.PyTree) -> Array:
        z, rows = jnp.zeros(num_predictors), jnp.eye(num_predictors)
        return FoundSize(outcome)(z, example, rows, 1.0, 2)

    try:
        jax.eval_shape(trace, example)
    except NotCoveredError as missing:
        return str(missing)
    return None


def _one(found: Jet, order: int) -> Array:
    part = found.parts.get((0,) * order)
    return jnp.zeros_like(found.value.lo) if part is None else part.largest


def _spread(rows: Array) -> list[list[Array]]:
    """S, triangular, by Cholesky's method on rows of length one; a share beyond rounding is added,
    so that S S^T is not below A H^-1 A^T.
    """
    lengths = jnp.sqrt(jnp.sum(rows**2, axis=1))
    units = rows / jnp.where(lengths > 0, lengths, 1.0)[:, None]
    share = 8.0 * (rows.shape[1] + 8) * float(np.finfo(np.float32).eps)
    found: list[list[Array]] = []
    for i in range(rows.shape[0]):
        row: list[Array] = []
        for j in range(i):
            across = jnp.dot(units[i], units[j]) - sum(
                (one * other for one, other in zip(row, found[j], strict=False)), start=0.0
            )
            row.append(across / found[j][j])
        left = 1.0 + share - sum((one * one for one in row), start=0.0)
        found.append([*row, jnp.sqrt(jnp.maximum(left, 0.5 * share))])
    return [[lengths[i] * entry for entry in row] for i, row in enumerate(found)]


@lru_cache(maxsize=64)
def _boxes(num_variables: int, radius: float) -> np.ndarray:
    """Boxes that cover the ball, as (box, end, axis)."""
    count = NUM_BOXES[num_variables]
    ends = np.linspace(-radius, radius, count + 1)
    sides = list(itertools.pairwise(ends))
    boxes = np.array(list(itertools.product(sides, repeat=num_variables))).transpose(0, 2, 1)
    nearest = np.linalg.norm(np.clip(0.0, boxes[:, 0], boxes[:, 1]), axis=1)
    return boxes[nearest <= radius * (1.0 + 1e-6)].astype(np.float32)
