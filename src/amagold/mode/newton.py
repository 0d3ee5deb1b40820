"""The mode by Newton's method: a few passes over the data where there are few enough parameters for a whole Hessian."""

import dataclasses
from typing import Any, NamedTuple

import jax
import numpy as np

from amagold import trees
from amagold.mode.derivatives import Derivatives, derivatives_at, prior_derivatives
from amagold.target import Posterior

MAX_ITERATIONS = 30
MAX_HALVINGS = 8
SUFFICIENT = 1e-4  # of the gain that the slope promises, a step must bring at least
ROUNDING = 1e-6  # of an energy in float32 sums: a loss below this is none
FEW = 2**15  # examples that a first mode is found from
MUCH_WORK = 10**9  # examples times squared parameters: a pass over less costs no more than compiling another program


class Point(NamedTuple):
    """A position with the energy of all data there and its derivatives, the prior among them, in float64."""

    position: trees.PyTree
    energy: float
    gradient: np.ndarray
    hessian: np.ndarray

    @property
    def is_finite(self) -> bool:
        return bool(np.isfinite(self.energy) and np.all(np.isfinite(self.gradient)) and np.all(np.isfinite(self.hessian)))


def newton_mode(target: Posterior, start: trees.PyTree, tolerance: float) -> tuple[trees.PyTree, int] | None:
    """The mode and the passes it took; None where the energy does not curve upwards on the way, or the steps do not get there.

    Many examples are searched from the mode of a few of them, which is some standard deviations away.
    """
    if target.num_examples * trees.size(start) ** 2 >= MUCH_WORK and target.num_examples >= 8 * FEW:
        stride = target.num_examples // FEW
        few = dataclasses.replace(target, data=jax.tree.map(lambda leaf: leaf[::stride][:FEW], target.data))
        near = _descend(few, start, target.num_examples / FEW, 1e-2)
        start = start if near is None else near[0]
    return _descend(target, start, 1.0, tolerance)


def _descend(target: Posterior, start: trees.PyTree, weight: float, tolerance: float) -> tuple[trees.PyTree, int] | None:
    """Damped Newton steps from the start until the squared distance to the mode is below the tolerance for each parameter."""
    here = _point(target, start, weight)
    for iteration in range(MAX_ITERATIONS):
        step = _newton_step(here) if here.is_finite else None
        if step is None:
            return None
        # g . H^-1 g: the squared distance to the mode in posterior standard deviations
        decrement = -float(here.gradient @ step)
        if decrement <= tolerance * len(step):
            return here.position, iteration + 1
        for halving in range(MAX_HALVINGS):
            there = _point(target, _moved(here.position, 0.5**halving * step), weight)
            gain = here.energy - there.energy
            if there.is_finite and gain >= SUFFICIENT * 0.5**halving * decrement - ROUNDING * abs(here.energy):
                break
        else:
            return None
        here = there
    return None


def _newton_step(point: Point) -> np.ndarray | None:
    """-H^-1 g, or None where H is not positive definite."""
    # in units where the diagonal is one, so that parameters of very different scales do not spoil it
    scales = np.sqrt(np.diag(point.hessian)) if np.all(np.diag(point.hessian) > 0.0) else None
    if scales is None:
        return None
    try:
        factor = np.linalg.cholesky(point.hessian / np.outer(scales, scales))
    except np.linalg.LinAlgError:
        return None
    return -np.linalg.solve(factor.T, np.linalg.solve(factor, point.gradient / scales)) / scales


def _moved(position: trees.PyTree, step: np.ndarray) -> trees.PyTree:
    # in NumPy, because every operation of JAX on its own is a program to compile
    flat = np.concatenate([np.ravel(np.asarray(leaf, np.float64)) for leaf in jax.tree.leaves(position)])
    return trees.as_position(trees.unflatten_like(flat + step, position))


def _point(target: Posterior, position: trees.PyTree, weight: float) -> Point:
    if not bool(target.is_inside(position)):
        nothing = np.zeros(trees.size(position))
        return Point(position, np.inf, nothing, np.diag(nothing))
    prior, data = (_in_float64(found) for found in (prior_derivatives(target.log_prior, position), derivatives_at(target, position, 2)))
    return Point(position, *(own + weight * of_data for own, of_data in zip(prior, data, strict=True)))


def _in_float64(found: Derivatives) -> tuple[Any, Any, Any]:
    energy = float(np.float64(found.energy.high) + np.float64(found.energy.low))
    return energy, np.asarray(found.gradient, np.float64), np.asarray(found.hessian, np.float64)
