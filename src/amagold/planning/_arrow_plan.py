"""The plan for a mixed model that a sweep is not worth it for: leapfrog steps with the gradient
over all data, in units of the curvature, which is an arrow.

A sweep saves rows where groups have many. Where they have few, and effects are large, its tests
look at about as many rows as there are, one by one, and accept less; a gradient sees them all at
once. But leapfrog steps must be short enough for every scale of effects that chains may come to,
and a sweep need not: where a scale may fall so far that effects become much narrower, it stays.
"""

import math
from dataclasses import asdict
from typing import Any, NamedTuple

import numpy as np

from amagold.acceptance._effect_tuning import TunedEffects, renewed
from amagold.core import trees
from amagold.mode._arrow_curvature import effects_curvature, sections_of
from amagold.mode._effect_mode import covariance_of
from amagold.mode._effect_sums import EffectSums, forms_of
from amagold.mode._spectrum import Spectrum, grouped
from amagold.planning._candidate import Candidate
from amagold.planning._candidate_search import best_of
from amagold.planning._costs import TransitionCosts, costs_of
from amagold.planning._leapfrog_option import FRICTION_SHARE
from amagold.planning._option_registry import GRADIENTS, TESTS, TRAJECTORIES
from amagold.planning._plan import JITTER, Plan
from amagold.planning._plan_inputs import PlanInputs
from amagold.samplers import Sampler
from amagold.target import Posterior
from amagold.target._group_effects import scale_name
from amagold.trajectory._arrow_mass import ArrowMass, unit_arrow
from amagold.trajectory._named_mass import ARROW, arrow_of

# of a sweep, in elementary operations: beside its rows, for each effect, and for each row that a
# test looks at by itself
SWEEP_OPERATIONS, EFFECT_OPERATIONS, ROW_OPERATIONS = 8e5, 4e3, 4e3
TRANSITION_OPERATIONS = 1e5  # of leapfrog steps and their test, beside what both do
SHARE = 0.6  # of a sweep's effective draws, that the worst level leaves of the usual one's
WORTH = 2.0  # times as cheap must a draw be to leave the sweep, which minds no narrow place
THOROUGH = 0.7  # of the most effective draws per transition: a run is as many as its user wants
LOW = 3.0  # posterior standard deviations below its mean, that a scale may come to
NARROWEST = 4.0  # times its curvature about the reference, that an effect may have there


class PlannedArrow(NamedTuple):
    plan: Plan
    sampler: Sampler


def plan_arrow(
    target: Posterior, sums: EffectSums, sweep: Any, found: TunedEffects
) -> PlannedArrow | None:
    """The plan where it is clearly the cheaper one, else None.

    Args:
      target: a mixed model.
      sums: about its reference. Rows bend most there: where a skewed level is on average, farther
        out, steps of a mass from there would be too long for the rest of it.
      sweep: the `EffectsPlan` that it would be instead of.
      found: what that one is made of.
    """
    prior: Any = target.log_prior
    if not sweep.has_tests or prior.shrunk is not None:
        return None  # which looks at no row, or whose steps would meet a horseshoe's pole
    costs = costs_of(target, target.init)
    of_sweep = _sweep_cost(sweep, costs)
    even = Spectrum(np.ones(1), np.array([float(costs.num_parameters)]))
    # can it be the cheaper one at all?
    if _cost(_best(even, costs), costs) * WORTH > of_sweep:
        return None
    mass = arrow_of(effects_curvature(target, sums))
    spectrum = _spectrum(target, sums, mass, found.pilot)
    if spectrum.eigenvalues.max() > NARROWEST:
        return None
    best = _best(spectrum, costs)
    if _cost(best, costs) * WORTH > of_sweep:
        return None
    length = best.num_steps * best.step_size
    plan = Plan(
        **asdict(best),
        friction=FRICTION_SHARE / length,
        trajectory_length=length,
        target_acceptance=best.acceptance,
        gradient_variance=0.0,
        num_parameters=costs.num_parameters,
        num_examples=target.num_examples,
        num_chains=sweep.num_chains,
        slow_down=1.0,
        is_mode_found=True,
        is_curvature_positive=True,
        kinds=[{**asdict(best), "cost_per_draw": best.cost_per_draw}],
        jitter=JITTER,
        levels=dict(zip(sweep.names, sweep.num_levels, strict=True)),
        sweep_rows=sweep.num_rows,
        sweep_slow_down=of_sweep / _cost(best, costs),
    )
    return PlannedArrow(plan, plan.build(target, mass))


def unit_mass(target: Posterior) -> ArrowMass:
    """A mass of the form that the plan of this target has, for values that come from a store."""
    sections, forms = sections_of(target), forms_of(target)
    effects = max(forms, key=lambda form: form.num_levels * form.num_effects).num_effects
    return unit_arrow(sections, effects)


def _sweep_cost(sweep: Any, costs: TransitionCosts) -> float:
    """Of an effective draw, in evaluations of one example."""
    operations = (
        SWEEP_OPERATIONS
        + EFFECT_OPERATIONS * (costs.num_parameters - sweep.num_slopes)
        + ROW_OPERATIONS * sweep.num_rows
    )
    # A (1 - cos angle) is what a turn takes off the autocorrelation
    shared = [sweep.acceptance * (1.0 - math.cos(sweep.angle)), sweep.mean_acceptance]
    moved = [1.0 - (1.0 - rate) ** sweep.num_turns for rate in shared]
    draws = SHARE * min(map(renewed, [*moved, *sweep.effect_acceptance]))
    return operations / costs.operations / max(draws, 1e-3)


def _cost(steps: Candidate, costs: TransitionCosts) -> float:
    """The same of leapfrog steps."""
    beside = TRANSITION_OPERATIONS / costs.operations
    return steps.cost_per_draw + beside / steps.ess_per_transition


def _best(spectrum: Spectrum, costs: TransitionCosts) -> Candidate:
    """The best number of leapfrog steps with the gradient over all data."""
    inputs = PlanInputs(ARROW, grouped(spectrum, None)[0], None, costs)
    gradient, test, trajectory = GRADIENTS["full"], TESTS["full"], TRAJECTORIES["leapfrog"]
    predicted = [
        trajectory.predict(inputs, gradient, test, trial)
        for trial in gradient.trials(inputs, 1)
        if trajectory.name in trial.trajectories
    ]
    open_ones = [each for each in predicted if each is not None]
    most = max(each.ess_per_transition for each in open_ones)
    return best_of([each for each in open_ones if each.ess_per_transition >= THOROUGH * most])


def _spectrum(target: Posterior, sums: EffectSums, mass: ArrowMass, pilot: Any) -> Spectrum:
    """The curvature in units of the mass: of effects where their scale is low, of scales as wide
    as a pilot saw them, and one of everything else.
    """
    variances: Any = trees.unflatten_like(np.asarray(mass.variances()), target.init)
    found = []
    parts = zip(forms_of(target), sums.factors, pilot.scale_means, pilot.scale_widths, strict=True)
    for form, factor, mean, width in parts:
        here = np.reshape(sums.position[scale_name(form.name)], -1)
        precision = np.linalg.inv(covariance_of(sums.position, form))
        fallen = np.exp(here - (np.asarray(mean) - LOW * np.asarray(width)))
        low = precision * np.outer(fallen, fallen)
        whitening = np.linalg.inv(np.linalg.cholesky(factor.curvature + precision))
        narrow = whitening @ (factor.curvature + low) @ np.swapaxes(whitening, -1, -2)
        found.append(np.maximum(np.linalg.eigvalsh(narrow).ravel(), 1.0))
        expected = np.reshape(variances[scale_name(form.name)], -1)
        found.append(np.minimum(expected / np.maximum(np.square(width), 1e-12), 1.0))
    eigenvalues = np.concatenate(found)
    rest = np.ones(max(trees.size(target.init) - len(eigenvalues), 0))
    eigenvalues = np.concatenate([eigenvalues, rest])
    return Spectrum(eigenvalues, np.ones(len(eigenvalues)))
