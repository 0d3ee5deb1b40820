"""Leapfrog steps, whose size the plan predicts and warm-up adapts."""

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from amagold.acceptance import Acceptance, UnboundTest
from amagold.core import trees
from amagold.gradients import GradientEstimator
from amagold.mode._spectrum import Spectrum
from amagold.planning._at_mode import AtMode
from amagold.planning._candidate import Candidate
from amagold.planning._discretisation import acceptance_from, discretisation_variance, turning
from amagold.planning._gradient_noise import noise_variance
from amagold.planning._option import (
    GradientOption,
    TestOption,
    TrajectoryOption,
    candidate,
    count,
    spending,
)
from amagold.planning._plan_inputs import PlanInputs, Trial
from amagold.samplers import Sampler, amagold
from amagold.target import Target
from amagold.trajectory._named_mass import ARROW

HIGHEST_ACCEPTANCE = 0.95  # above this an adaptation has little to go by
FRICTION_SHARE = 0.1  # T b: the share of the momentum that friction renews over a trajectory
RATIO = 1.15**0.5  # between neighbouring step sizes of the search
# places to either side that a choice must hold for: step sizes 15 % smaller and larger
NEIGHBOURS = 2
NUM_STEP_SIZES = 130


class LeapfrogOption(TrajectoryOption):
    name = "leapfrog"
    source = "the step's size"

    def predict(
        self, inputs: PlanInputs, gradient: GradientOption, test: TestOption, trial: Trial
    ) -> Candidate | None:
        num_steps, batching = trial.num_steps, trial.batching
        spectrum, of_one = inputs.spectrum, inputs.noise_of(trial.batching)
        fastest = float(spectrum.eigenvalues.max())
        # the largest stable step is 2 / sqrt(lambda_max)
        step_sizes = (
            2.0 / np.sqrt(fastest) * RATIO ** -np.arange(NUM_STEP_SIZES - 1, -2 * NEIGHBOURS, -1.0)
        )
        discretisation = discretisation_variance(spectrum, step_sizes, num_steps)
        noise = np.zeros_like(step_sizes)
        if batching is not None and of_one is not None:
            noise = noise_variance(
                of_one,
                spectrum,
                step_sizes,
                num_steps,
                FRICTION_SHARE,
                batching.plan,
                batching.size,
                inputs.costs.num_examples,
            )
        # a resonance may hide the error of a larger step, and adaptation climbs no valley: the
        # worst of all smaller steps counts
        drawn = test.variance(inputs)
        total = np.maximum.accumulate(np.nan_to_num(noise, nan=np.inf) + discretisation) + drawn
        acceptance = acceptance_from(total)
        spent = spending(inputs, gradient, test, trial)
        ess = effective_draws(spectrum, step_sizes, num_steps, acceptance)
        lowest = gradient.lowest_acceptance(batching, spent.share)
        is_allowed = (acceptance >= lowest) & (acceptance <= HIGHEST_ACCEPTANCE) & np.isfinite(ess)
        if not is_allowed.any():
            return None
        best = int(np.argmax(np.where(is_allowed, ess, -np.inf)))
        return candidate(
            inputs,
            gradient,
            test,
            trial,
            spent,
            integrator=self.name,
            step_size=float(step_sizes[best]),
            acceptance=float(acceptance[best]),
            noise_variance=float(noise[best]),
            discretisation_variance=float(total[best] - noise[best] - drawn),
            ess_per_transition=float(ess[best]),
        )

    def build(
        self,
        plan: Any,
        target: Target,
        mass: trees.PyTree,
        gradient: GradientEstimator | None,
        test: Acceptance | UnboundTest | None,
        at_mode: AtMode,
    ) -> Sampler:
        sampler = amagold(
            target,
            step_size=plan.step_size,
            friction=plan.friction,
            num_steps=plan.num_steps,
            mass=mass,
            gradient=gradient,
            acceptance=test,
        )
        return replace(sampler, jitter=plan.jitter)

    def words(self, plan: Any) -> str:
        if plan.searches_steps:
            kind = "whole" if plan.searched_mass == "dense" else "diagonal of the"
            return (
                f"Steps: {plan.num_steps} leapfrog steps per proposal to begin with; warm-up looks "
                f"for their number by trials, for the {kind} mass matrix from the draws and their "
                "gradients, and for the step size; no mode is planned around."
            )
        adapted = " and the mass" if plan.adapts_mass else ", the mass is the curvature at the mode"
        kind = f"a {plan.mass} mass matrix"
        if plan.mass == ARROW:
            adapted = ""
            kind = (
                "a mass matrix that is the curvature, an arrow: a block for each level, and a "
                "border of what all levels share"
            )
        return (
            f"Steps: {count(plan.num_steps, 'leapfrog step')} of size {plan.step_size:.3g} per "
            f"proposal, friction {plan.friction:.3g}, in units of {kind}; "
            f"warm-up adjusts the step size{adapted}."
        )


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
    known = (np.asarray(each, float).tobytes() for each in (spectrum.eigenvalues, step_sizes))
    correlation = _known_correlation(*known, num_steps)
    moved = np.nan_to_num(
        acceptance[:, None] * np.stack([1.0 - correlation, 1.0 - correlation**2]), nan=0.0
    )
    padded = np.pad(moved, ((0, 0), (NEIGHBOURS, NEIGHBOURS), (0, 0)))
    mean = (padded[:, : len(step_sizes)] + moved + padded[:, 2 * NEIGHBOURS :]) / 3.0
    # (1 - R) / (1 + R) with R the autocorrelation: effective draws of an autoregression
    return np.min(mean / (2.0 - mean), axis=(0, 2))


@lru_cache(maxsize=64)
def _known_correlation(eigenvalues: bytes, step_sizes: bytes, num_steps: int) -> np.ndarray:
    """The same for all gradients, batches and tests, of which there are many to each length."""
    values, steps = (np.frombuffer(each, np.float64) for each in (eigenvalues, step_sizes))
    return proposal_correlation(Spectrum(values, np.ones_like(values)), steps, num_steps)


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
