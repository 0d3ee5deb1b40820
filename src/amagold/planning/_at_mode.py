"""What a plan may build on beside the curvature: a reference for control variates, and an exact
test on a few examples.
"""

import warnings
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp

from amagold.acceptance import LevelTest, TunaTest, tuna
from amagold.acceptance._level_setup import has_levels
from amagold.acceptance._tuna_setup import UnboundedError
from amagold.core import trees
from amagold.core.shapes import Vector
from amagold.mode._curvature import Curvature
from amagold.mode._mean_slope import mean_slope
from amagold.mode._mode_search import Mode
from amagold.mode._rare_rows import RareRows
from amagold.mode._reference import Reference, reference_at, reference_from
from amagold.mode._row_bounds import Norm
from amagold.target import Posterior, Target

MOST_PARAMETERS = 4096
FEWEST_EXAMPLES = 500  # with fewer, all of them together cost no more than the framework's own work


class AtMode(NamedTuple):
    """What passes over the data told about the mode; None where it does not apply."""

    reference: Reference | None = None
    test: TunaTest | LevelTest | None = None
    position: trees.PyTree = None  # the mode, or the mean where that is known better
    norm: Norm | None = None  # that the test's bounds are in, where it is to be built again
    tilt: Vector | None = None  # the mean slope of what the expansion leaves out
    rare: RareRows | None = None  # rows that gradient and test look at every time


def build_at_mode(target: Target, mode: Mode, curvature: Curvature) -> AtMode:
    """The reference at the mode and the exact test about it, where the posterior has a mode that it
    is concentrated around.

    The gradient at the reference is known from all data, the Hessian too where it is kept whole.
    """
    if (
        not isinstance(target, Posterior)
        or target.num_examples < FEWEST_EXAMPLES
        or curvature.num_parameters > MOST_PARAMETERS
    ):
        return AtMode(position=mode.position)
    if not (mode.is_converged and curvature.is_positive):
        return AtMode(position=mode.position)
    known = curvature.of_data
    reference = (
        reference_at(target, mode.position, 1)
        if known is None
        else reference_from(target, mode.position, known)
    )
    test = None
    if target.bounds is not None and curvature.is_dense:
        try:
            test = tuna().bind(target, reference, None if known is None else known.bounds)
        except UnboundedError as reason:
            warnings.warn(f"All data are looked at by every test: {reason}.", stacklevel=2)
    if isinstance(test, LevelTest):
        return about_the_mean(target, AtMode(reference, test, mode.position, rare=test.rare))
    return AtMode(reference, test, mode.position)


def restored_at_mode(
    target: Target, plan: Any, reference: Reference | None, form: trees.PyTree, norm: Norm | None
) -> AtMode:
    """The same for a stored run that goes on: the mode's and the mass' values come from its
    checkpoint, so that any of the planned form will do.
    """
    position = jax.tree.map(lambda leaf: jnp.zeros(leaf.shape, leaf.dtype), form)
    found = AtMode(reference, position=position, norm=norm)
    bounds = target.bounds
    if plan.gradient != "expansion" or bounds is None or reference is None:
        return found
    assert isinstance(target, Posterior)
    if not has_levels(target, bounds, 2):
        return found
    test = tuna().bind(target, reference)
    assert isinstance(test, LevelTest)
    return about_the_mean(target, found._replace(test=test, rare=test.rare))


def about_the_mean(target: Posterior, at_mode: AtMode) -> AtMode:
    """With the mean slope of what the expansion leaves out, and the mean for the mode."""
    assert at_mode.reference is not None
    tilt, mean = mean_slope(target, at_mode.reference, at_mode.rare)
    return at_mode._replace(position=mean, tilt=tilt)
