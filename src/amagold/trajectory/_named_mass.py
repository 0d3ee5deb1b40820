"""The mass of a sampler, as its user gave it: numbers, or the name of a shape that the target's own
curvature fills.
"""

from typing import TYPE_CHECKING

import numpy as np

from amagold.core import trees
from amagold.target import Target
from amagold.trajectory._arrow_mass import ArrowMass, arrow_mass
from amagold.trajectory._mass_matrix import Mass, as_mass

if TYPE_CHECKING:
    from amagold.mode._arrow_curvature import ArrowCurvature

ARROW = "arrow"


def mass_of(target: Target, mass: trees.PyTree) -> Mass:
    """`as_mass`, and "arrow" for the curvature of a posterior with groups."""
    if not isinstance(mass, str):
        return as_mass(mass)
    if mass != ARROW:
        raise ValueError(
            f"mass must be a number, a diagonal, a matrix or {ARROW!r}, got {mass!r}; to estimate "
            "one from draws, use warmup=amagold.Warmup(mass=...)"
        )
    from amagold.mode._arrow_curvature import arrow_curvature  # late, because it loads scipy

    found = arrow_curvature(target)
    if found is None:
        raise ValueError(
            f"mass={ARROW!r} needs a model with groups whose rows are in memory, and whose "
            "reference is found: models.mixed, or a regression with a factor and one mode; give "
            "a number, a diagonal or a matrix"
        )
    return arrow_of(found)


def arrow_of(curvature: "ArrowCurvature") -> ArrowMass:
    """The mass that is the curvature; without what couples scales to the rest where that is not
    positive, which few groups may bring about.
    """
    try:
        return _factorised(curvature)
    except np.linalg.LinAlgError:
        return _factorised(curvature.without_scales())


def _factorised(found: "ArrowCurvature") -> ArrowMass:
    return arrow_mass(found.sections, found.blocks, found.border, found.corner, found.alone)
