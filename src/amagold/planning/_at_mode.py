"""What a plan may build on beside the curvature: a reference for control variates, and an exact
test on a few examples.
"""

from typing import NamedTuple

from amagold.acceptance import TunaTest, tuna
from amagold.core import trees
from amagold.mode._curvature import Curvature
from amagold.mode._mode_search import Mode
from amagold.mode._reference import Reference, reference_at, reference_from
from amagold.mode._row_bounds import Norm
from amagold.target import Posterior, Target

MOST_PARAMETERS = 4096
FEWEST_EXAMPLES = 500  # with fewer, all of them together cost no more than the framework's own work


class AtMode(NamedTuple):
    """What passes over the data told about the mode; None where it does not apply."""

    reference: Reference | None = None
    test: TunaTest | None = None
    position: trees.PyTree = None
    norm: Norm | None = None  # that the test's bounds are in, where it is to be built again


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
        else reference_from(mode.position, known)
    )
    test = None
    if target.bounds is not None and curvature.is_dense:
        test = tuna().bind(target, reference, None if known is None else known.bounds)
    return AtMode(reference, test, mode.position)
