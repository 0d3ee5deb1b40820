"""What all options are judged by: curvature, gradient noise and costs under one mass."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from amagold.mode._spectrum import Spectrum
from amagold.planning._costs import TransitionCosts
from amagold.planning._non_gaussianity import NonGaussianity


class Batching(NamedTuple):
    """Which examples a step's gradient sees."""

    plan: str  # "iid", "epoch" or "palindrome"
    size: int
    order: int | None = None  # of the control variates


class Trial(NamedTuple):
    """A trajectory to be judged."""

    num_steps: int  # T
    batching: Batching | None = None  # None: all examples at every step
    trajectories: tuple[str, ...] = ("leapfrog",)  # by name, that it may be made by


@dataclass(frozen=True)
class FewExamples:
    """What the exact test on a few examples is expected to look at, and the variance that it adds
    to log a.
    """

    examples: float
    variance: float
    rare: int = 0  # of rare levels, that are looked at every time


@dataclass(frozen=True)
class PlanInputs:
    """What candidates share under one mass."""

    mass: str
    spectrum: Spectrum
    # of one example's gradient along each direction; None for a target without data
    noise: np.ndarray | None
    costs: TransitionCosts
    # the same noise with control variates of an order
    controlled: Mapping[int, np.ndarray] = field(default_factory=dict)
    few: FewExamples | None = None
    # what the Gaussian with this mass leaves, where it is a Gaussian nearly
    non_gaussianity: NonGaussianity | None = None

    def noise_of(self, batching: Batching | None) -> np.ndarray | None:
        """Of one example's gradient along each direction; None where there is none."""
        if batching is None:
            return None
        return self.noise if batching.order is None else self.controlled[batching.order]
