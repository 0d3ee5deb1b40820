"""One way to sample, and what it is predicted to bring and to cost."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from amagold.mode._spectrum import Spectrum
from amagold.planning._best_acceptance import best_acceptance
from amagold.planning._costs import Costs
from amagold.planning._discretisation import acceptance_from, discretisation_variance, turning
from amagold.planning._gradient_noise import noise_variance
from amagold.planning._non_gaussianity import Rest

# HMC's efficiency is flat from 0.65 to 0.9; the upper half forgives curvature that varies
FULL_BATCH_ACCEPTANCE = 0.8
LOWEST_ACCEPTANCE, HIGHEST_ACCEPTANCE = 0.5, 0.95  # outside these an adaptation has little to go by
FRICTION_SHARE = 0.1  # T b: the share of the momentum that friction renews over a trajectory
RATIO = 1.15**0.5  # between neighbouring step sizes of the search
# places to either side that a choice must hold for: step sizes 15 % smaller and larger
NEIGHBOURS = 2
NUM_STEP_SIZES = 130


@dataclass(frozen=True)
class Candidate:
    """One gradient, batch and trajectory with its best step size, and the figures predicted
    for it.
    """

    gradient: str  # "full", "minibatch" or "control variate"
    batch_plan: str | None
    batch_size: int | None
    mass: str
    num_steps: int
    step_size: float
    acceptance: float
    noise_variance: float  # of log a
    discretisation_variance: float  # of log a
    gradient_share: float  # of the cost
    ess_per_transition: float
    cost_per_transition: float  # in evaluations of one example
    order: int | None = None  # of the control variates
    test: str = "full"  # or "tuna": exact on a few examples
    test_examples: float = 0.0  # that a test is expected to look at
    integrator: str = "leapfrog"  # or "rotation": exact for a Gaussian

    @property
    def cost_per_draw(self) -> float:
        """The cost of one effective draw."""
        return self.cost_per_transition / self.ess_per_transition


@dataclass(frozen=True)
class FewExamples:
    """What the exact test on a few examples is expected to look at, and the variance that it adds
    to log a.
    """

    examples: float
    variance: float


@dataclass(frozen=True)
class Setting:
    """What candidates share under one mass."""

    mass: str
    spectrum: Spectrum
    # of one example's gradient along each direction; None for a target without data
    noise: np.ndarray | None
    costs: Costs
    # the same noise with control variates of an order
    controlled: Mapping[int, np.ndarray] = field(default_factory=dict)
    few: FewExamples | None = None
    # what the Gaussian with this mass leaves, where it is a Gaussian nearly
    rest: Rest | None = None

    def costs_of(
        self,
        num_steps: int,
        batch_plan: str | None,
        batch_size: int | None,
        order: int | None,
        test: str,
    ) -> tuple[float, float, float]:
        """Of a transition's gradients and of its test, and the examples that the test looks at."""
        gradients = self.costs.gradients(batch_size, num_steps, self.mass, order)
        if test == "tuna" and self.few is not None:
            return gradients, self.costs.test_on_few(self.few.examples), self.few.examples
        return gradients, self.costs.test(batch_plan), float(self.costs.num_examples)

    def candidate(
        self,
        num_steps: int,
        batch_plan: str | None = None,
        batch_size: int | None = None,
        order: int | None = None,
        test: str = "full",
    ) -> Candidate | None:
        """The candidate with its best step size; None where no step size is usable."""
        of_one = self.noise if order is None else self.controlled[order]
        fastest = float(self.spectrum.eigenvalues.max())
        # the largest stable step is 2 / sqrt(lambda_max)
        step_sizes = (
            2.0 / np.sqrt(fastest) * RATIO ** -np.arange(NUM_STEP_SIZES - 1, -2 * NEIGHBOURS, -1.0)
        )
        discretisation = discretisation_variance(self.spectrum, step_sizes, num_steps)
        noise = np.zeros_like(step_sizes)
        if batch_plan is not None and batch_size is not None and of_one is not None:
            noise = noise_variance(
                of_one,
                self.spectrum,
                step_sizes,
                num_steps,
                FRICTION_SHARE,
                batch_plan,
                batch_size,
                self.costs.num_examples,
            )
        # a resonance may hide the error of a larger step, and adaptation climbs no valley: the
        # worst of all smaller steps counts
        drawn = self.few.variance if test == "tuna" and self.few is not None else 0.0
        total = np.maximum.accumulate(np.nan_to_num(noise, nan=np.inf) + discretisation) + drawn
        acceptance = acceptance_from(total)

        gradients, testing, examples = self.costs_of(num_steps, batch_plan, batch_size, order, test)
        share = gradients / (gradients + testing)
        # with control variates the step's size is what limits, as with the full gradient
        lowest = (
            FULL_BATCH_ACCEPTANCE if batch_plan is None or order is not None else LOWEST_ACCEPTANCE
        )
        if batch_plan == "iid" and order is None:
            # independent noise lets T and the step size trade at a fixed trajectory length, which
            # is what this rule is for
            lowest = max(lowest, best_acceptance(share))
        ess = effective_draws(self.spectrum, step_sizes, num_steps, acceptance)
        is_allowed = (acceptance >= lowest) & (acceptance <= HIGHEST_ACCEPTANCE) & np.isfinite(ess)
        if not is_allowed.any():
            return None
        best = int(np.argmax(np.where(is_allowed, ess, -np.inf)))
        return Candidate(
            gradient=kind_of_gradient(batch_plan, order),
            batch_plan=batch_plan,
            batch_size=batch_size,
            mass=self.mass,
            num_steps=num_steps,
            step_size=float(step_sizes[best]),
            acceptance=float(acceptance[best]),
            noise_variance=float(noise[best]),
            discretisation_variance=float(total[best] - noise[best] - drawn),
            gradient_share=float(share),
            ess_per_transition=float(ess[best]),
            cost_per_transition=float(gradients + testing),
            order=order,
            test=test,
            test_examples=examples,
        )


def kind_of_gradient(batch_plan: str | None, order: int | None) -> str:
    return "full" if batch_plan is None else "minibatch" if order is None else "control variate"


def effective_draws(
    spectrum: Spectrum, step_sizes: np.ndarray, num_steps: int, acceptance: np.ndarray
) -> np.ndarray:
    """Effective draws per transition of the slowest direction, for its mean and its variance, for
    each step size.

    A proposal that has correlation C with where it came from gives a chain the autocorrelation 1 -
    A (1 - C), where A is the acceptance; squares have C^2 for C. Each is averaged with step sizes
    15 % smaller and larger, so that no choice rests on a resonance that adaptation, or the real
    target, would move away from.
    """
    correlation = proposal_correlation(spectrum, step_sizes, num_steps)
    moved = np.nan_to_num(
        acceptance[:, None] * np.stack([1.0 - correlation, 1.0 - correlation**2]), nan=0.0
    )
    padded = np.pad(moved, ((0, 0), (NEIGHBOURS, NEIGHBOURS), (0, 0)))
    mean = (padded[:, : len(step_sizes)] + moved + padded[:, 2 * NEIGHBOURS :]) / 3.0
    # (1 - R) / (1 + R) with R the autocorrelation: effective draws of an autoregression
    return np.min(mean / (2.0 - mean), axis=(0, 2))


def proposal_correlation(spectrum: Spectrum, step_sizes: np.ndarray, num_steps: int) -> np.ndarray:
    """corr(theta, theta*) along each direction of a Gaussian: cos(T angle), damped by friction; NaN
    where unstable.

    One step is the matrix A = [[1 - e g / 2, (e / 2)(1 + k - e g / 2)], [-g, k - e g / 2]] on (x,
    p), with e = epsilon, g = e lambda / (1 + b) and k = (1 - b) / (1 + b). Its eigenvalues m, m'
    have m m' = k, and A^T = ((m^T - m'^T) A - k (m^(T-1) - m'^(T-1)) I) / (m - m').
    """
    decay = FRICTION_SHARE / num_steps
    keep = (1.0 - decay) / (1.0 + decay)
    pull = np.multiply.outer(np.square(step_sizes), spectrum.eigenvalues) / (1.0 + decay)  # e g
    middle = 0.5 * (1.0 + keep - pull)
    root = np.sqrt(middle.astype(complex) ** 2 - keep)
    root = np.where(np.abs(root) < 1e-7, 1e-7, root)
    one, other = middle + root, middle - root
    with np.errstate(over="ignore", invalid="ignore"):
        powers = [
            (one**power - other**power) / (2.0 * root) for power in (num_steps, num_steps - 1)
        ]
        correlation = np.real(powers[0] * (1.0 - 0.5 * pull) - keep * powers[1])
    return np.where(np.isnan(turning(spectrum, step_sizes)), np.nan, correlation)
