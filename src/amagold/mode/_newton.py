"""Newton's method with absolute eigenvalues: downhill from anywhere, also where the energy curves
down.

    step = -|H|^-1 g,    |H| = V |Lambda| V^T

Near a mode that is Newton's own step. Near a saddle or where a noise scale is far off, the absolute
values turn uphill directions around (saddle-free Newton, Dauphin et al., 2014), where a plain
Newton step would climb or not exist.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import jax
import numpy as np

from amagold.core import trees
from amagold.core.shapes import HostMatrix, HostVector, Position
from amagold.mode._class_shifts import ClassShifts, class_shifts
from amagold.mode._derivatives import (
    Derivatives,
    density_derivatives,
    derivatives_at,
)
from amagold.mode._row_bounds import Norm, TaylorBound
from amagold.target import Posterior, Target
from amagold.target._linear_bounds import SparsePredictor

MAX_ITERATIONS = 60
MAX_HALVINGS = 12
MAX_DOUBLINGS = 4  # of a step that was good: far from the mode the curvature may be much too large
SUFFICIENT = 1e-4  # of the gain that the slope promises, a step must bring at least
ROUNDING = 1e-6  # of an energy in float32 sums: a loss below this is none
# where rounding stops the search, a decrement up to this many tolerances still counts as the mode
STALLED = 100.0
# of eigenvalues in units where the diagonal is one: what float32 sums can tell from zero
FLAT = 1e-6
FLOOR = 1e-8  # what an eigenvalue counts as at least, in the same units
# per parameter: two standard deviations off, over-dispersed and yet in the bulk
START_DECREMENT = 4.0
LARGEST = 1e18  # beyond this a float32 square overflows


class Point(NamedTuple):
    """A position with the energy of all data there and its derivatives, the prior among them, in
    float64.
    """

    position: Position
    energy: float
    gradient: HostVector
    hessian: HostMatrix
    of_data: Derivatives | None = None  # of all data alone, where no example stood for others
    shifts: ClassShifts | None = None  # along which the data say nothing

    @property
    def is_finite(self) -> bool:
        found = (self.energy, self.gradient, self.hessian)
        return all(
            bool(np.all(np.isfinite(part)) and np.all(np.abs(part) < LARGEST)) for part in found
        )


class Curved(NamedTuple):
    """The Hessian at a point by its eigenvalues, in units where its diagonal is one: H = Q S V
    Lambda V^T S Q^T, where Q holds the coordinates that are looked at.
    """

    scales: HostVector
    eigenvalues: HostVector
    directions: HostMatrix
    basis: HostMatrix | None = None  # Q; None is the identity

    @property
    def is_upwards(self) -> bool:
        """Whether no direction clearly curves down."""
        return bool(self.eigenvalues.min() > -FLAT)

    @property
    def is_clearly_upwards(self) -> bool:
        return bool(self.eigenvalues.min() > FLAT)

    @property
    def absolute(self) -> HostVector:
        return np.maximum(np.abs(self.eigenvalues), FLOOR)

    def step(self, gradient: HostVector) -> HostVector:
        """-|H|^-1 g."""
        turned = gradient if self.basis is None else self.basis.T @ gradient
        along = self.directions.T @ (turned / self.scales)
        return self._turned(-(self.directions @ (along / self.absolute)) / self.scales)

    def downhill(self) -> HostVector:
        """A step of length one along the direction that curves down most."""
        return self._turned(self.directions[:, 0] / np.sqrt(self.absolute[0]) / self.scales)

    @property
    def log_determinant(self) -> float:
        """log det |H|."""
        return float(2.0 * np.sum(np.log(self.scales)) + np.sum(np.log(self.absolute)))

    @property
    def factor(self) -> HostMatrix:
        """F with |H|^-1 = F F^T."""
        return self._turned(self.directions / np.sqrt(self.absolute) / self.scales[:, None])

    def _turned(self, found: np.ndarray) -> np.ndarray:
        """Back to the position's own coordinates."""
        return found if self.basis is None else self.basis @ found


class Descent(NamedTuple):
    """Where a search began to be near, and where it ended."""

    # the first place within two standard deviations of a mode of its own curvature, or the end
    near: Point
    end: Point
    is_converged: bool
    num_iterations: int


def descend(
    target: Target,
    start: Position,
    *,
    weight: float = 1.0,
    tolerance: float = 1e-4,
    max_iterations: int = MAX_ITERATIONS,
    known: Sequence[Point] = (),
    longest: HostVector | None = None,
    saves_passes: bool = False,
) -> Descent:
    """Damped steps until the squared distance to the mode, g . H^-1 g, is below the tolerance for
    each parameter.

    Args:
      target: an `amagold.Posterior` or `amagold.Density`, of few parameters.
      start: where to begin.
      weight: what an example counts as, for data that stand for more.
      tolerance: in squared posterior standard deviations per parameter.
      max_iterations: steps before giving up.
      known: modes; a search that comes near one ends there.
      longest: what a step may change each parameter by where the energy curves down; None is
        anything.
      saves_passes: for a start that is near already: where the search came near is then not looked
        for, and bounds are taken together with the derivatives.
    """
    here = point_at(target, start, weight)
    near: Point | None = None
    curved: Curved | None = None  # at `here`, where it is known already
    num_saddles = 0
    iteration = 0
    for iteration in range(1, max_iterations + 1):
        if not here.is_finite:
            return Descent(here, here, False, iteration)
        curved = curved_at(here) if curved is None else curved
        step = curved.step(here.gradient)
        decrement = -float(here.gradient @ step)
        if near is None and decrement <= START_DECREMENT * len(step):
            near = here
        is_close = decrement <= tolerance * len(step)
        if is_close and curved.is_upwards:
            return Descent(near or here, here, curved.is_clearly_upwards, iteration)
        same = next((mode for mode in known if _is_about(mode, here)), None)
        if same is not None:
            return Descent(near or here, same, True, iteration)
        if is_close:  # a saddle: leave it by the way that falls most
            num_saddles += 1
            if num_saddles > 3:
                break
            neighbours = [
                point_at(target, moved(here.position, sign * curved.downhill()), weight)
                for sign in (1.0, -1.0)
            ]
            here = min(neighbours, key=lambda one: one.energy if one.is_finite else np.inf)
            curved = None
            continue
        if longest is not None and not curved.is_clearly_upwards:
            step = step * min(
                1.0, float(np.min(longest / np.maximum(np.abs(step), np.finfo(np.float64).tiny)))
            )
        doubles = longest is None and not curved.is_clearly_upwards
        there = _search_along(
            target, here, step, decrement, weight, doubles=doubles, bounds_too=saves_passes
        )
        if there is None:
            is_stalled = decrement <= STALLED * tolerance * len(step) and curved.is_clearly_upwards
            return Descent(near or here, here, is_stalled, iteration)
        curved = None
        if near is None and not saves_passes:
            curved = curved_at(there)
            near = _on_the_way(target, here, there, curved, decrement, weight)
        here = there
    return Descent(near or here, here, False, iteration)


def _is_about(mode: Point, here: Point) -> bool:
    """Whether a point lies where the mode's Gaussian describes the energy."""
    size = len(mode.gradient)
    away = trees.known_numbers(here.position) - trees.known_numbers(mode.position)
    predicted = 0.5 * float(away @ mode.hessian @ away)
    return predicted <= 0.5 * size and abs(here.energy - mode.energy - predicted) <= 0.1 * size


def _on_the_way(
    target: Target, here: Point, there: Point, curved: Curved, decrement: float, weight: float
) -> Point | None:
    """Where a step that jumps to a mode, with its curvature, came within two standard deviations of
    it; None where it does not come near.
    """
    size = len(there.gradient)
    if -float(there.gradient @ curved.step(there.gradient)) > START_DECREMENT * size:
        return None
    # on a quadratic, 1 - t of the way is left after t of the step, and (1 - t)^2 of the decrement
    length = 1.0 - np.sqrt(START_DECREMENT * size / decrement)
    step = trees.known_numbers(there.position) - trees.known_numbers(here.position)
    point = point_at(target, moved(here.position, length * step), weight)
    return point if point.is_finite and point.energy <= here.energy else None


def _search_along(
    target: Target,
    here: Point,
    step: HostVector,
    decrement: float,
    weight: float,
    *,
    doubles: bool,
    bounds_too: bool,
) -> Point | None:
    """The first good point of the step halved again and again; where the curvature is not to be
    trusted, doubled too.
    """
    norm = here.hessian if bounds_too else None
    for halving in range(MAX_HALVINGS):
        length = 0.5**halving
        there = point_at(target, moved(here.position, length * step), weight, norm)
        gain = here.energy - there.energy
        if there.is_finite and gain >= SUFFICIENT * length * decrement - ROUNDING * abs(
            here.energy
        ):
            break
    else:
        return None
    for _ in range(MAX_DOUBLINGS if doubles and halving == 0 else 0):
        length *= 2.0
        farther = point_at(target, moved(here.position, length * step), weight, norm)
        if not farther.is_finite or farther.energy >= there.energy:
            break
        there = farther
    return there


def curved_at(point: Point) -> Curved:
    """The eigenvalues of the Hessian at a point that is finite."""
    # in units where the diagonal is one, so that parameters of very different scales do not spoil
    # it
    basis = None if point.shifts is None else point.shifts.basis
    hessian = point.hessian if basis is None else basis.T @ point.hessian @ basis
    diagonal = np.abs(np.diag(hessian))
    typical = np.median(diagonal[diagonal > 0.0]) if np.any(diagonal > 0.0) else 1.0
    scales = np.sqrt(np.maximum(diagonal, 1e-12 * typical))
    return Curved(scales, *np.linalg.eigh(hessian / np.outer(scales, scales)), basis)


def moved(position: Position, step: HostVector) -> Position:
    # in NumPy, because every operation of JAX on its own is a program to compile
    return jax.tree.map(
        np.asarray, trees.unflatten_like(trees.known_numbers(position) + step, position)
    )


def point_at(
    target: Target, position: Position, weight: float = 1.0, norm: HostMatrix | None = None
) -> Point:
    """The energy and its derivatives; infinite outside the domain.

    With a norm, the examples' bounds in it come from the same pass, where the target has some.
    """
    nothing = np.zeros(trees.size(position))
    if not trees.is_finite(position) or not bool(target.is_inside(position)):
        return Point(position, np.inf, nothing, np.diag(nothing))
    if not isinstance(target, Posterior):
        return Point(position, *_in_float64(density_derivatives(target.smooth_log_prior, position)))
    energy, gradient, hessian = _in_float64(density_derivatives(target.smooth_log_prior, position))
    of_data = derivatives_at(target, position, 2, _bound(target, position, norm))
    height, slope, bend = _in_float64(of_data)
    shifts = class_shifts(target, position)
    if shifts is not None:
        slope, bend = shifts.known_slope(slope), shifts.known_curvature(bend)
    return Point(
        position,
        energy + weight * height,
        gradient + weight * slope,
        hessian + weight * bend,
        of_data if weight == 1.0 else None,
        shifts,
    )


def _bound(target: Posterior, position: Position, norm: HostMatrix | None) -> TaylorBound | None:
    """Of remainders of order 2, which exact tests on a few examples prefer."""
    bounds = target.bounds
    if norm is None or bounds is None or math.isinf(bounds.derivatives[2]):
        return None
    if isinstance(bounds.predictor, SparsePredictor):
        return None  # tests draw rows by their levels
    try:
        return TaylorBound(bounds, 2, trees.as_position(position), Norm.of_matrix(norm))
    except np.linalg.LinAlgError:
        return None


def _in_float64(found: Derivatives) -> tuple[float, HostVector, HostMatrix]:
    energy = float(np.float64(found.energy.high) + np.float64(found.energy.low))
    return energy, np.asarray(found.gradient, np.float64), np.asarray(found.hessian, np.float64)
