"""The plan for a mixed model: a sweep in which every level has a test of its own, and scales and
coefficients move with whitened effects fixed.
"""

import dataclasses
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.acceptance._effect_setup import untuned_effects
from amagold.acceptance._effect_starts import gaussian_states, positions_of
from amagold.acceptance._effect_state import move_names
from amagold.acceptance._effect_sweep import EffectSweep
from amagold.acceptance._effect_tuning import TunedEffects, tuned_effects
from amagold.core import trees
from amagold.data._spread import spread_in
from amagold.gradients import full as full_gradient
from amagold.mode._effect_mode import find_reference
from amagold.mode._effect_sums import sums_at
from amagold.mode._reference import Reference
from amagold.planning._arrow_plan import plan_arrow
from amagold.planning._plan import Plan
from amagold.samplers import Sampler
from amagold.target import Posterior, Target
from amagold.target._effects_prior import EffectsPrior
from amagold.target._group_effects import FIXED, GroupedLikelihood
from amagold.trajectory._rest import Rest

MOST_SLOPES = 512  # whose Schur complement is factorised, and carried along by every level
FAR = 2.0  # posterior standard deviations from the reference, at which chains begin


@dataclass(frozen=True)
class EffectsPlan:
    """A sweep over the effects of a mixed model, as it was set up; lists have an entry for each
    factor.
    """

    num_parameters: int
    num_examples: int
    names: list[str]
    num_levels: list[int]
    num_slopes: int
    num_chains: int
    has_tests: bool  # False for Gaussian noise, where all but scales are exact draws
    angle: float
    block_size: int
    slope_spread: float
    effect_spreads: list[float]
    scale_spreads: list[float]
    strides: list[list[float]]  # of every scale and correlation of a factor
    acceptance: float  # of the slopes, expected
    effect_acceptance: list[float]
    scale_acceptance: list[float]
    slope_rows: float
    effect_rows: list[float]
    scale_rows: list[float]
    mean_spread: float = 0.0  # of the move of crossed factors' means
    mean_acceptance: float = 1.0
    mean_rows: float = 0.0
    num_turns: int = 1  # of the slopes and the means, in a sweep
    num_shrunk: int = 0  # coefficients with horseshoe priors

    @property
    def label(self) -> str:
        return "exact"

    @property
    def moves(self) -> tuple[str, ...]:
        """What the moves of a sweep are called by in a run's statistics."""
        return move_names(self.names)

    @property
    def num_rows(self) -> float:
        """That a sweep looks at, expected."""
        shared = self.num_turns * (self.slope_rows + self.mean_rows)
        return shared + sum(self.effect_rows) + sum(self.scale_rows)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "EffectsPlan":
        return cls(**stored)

    def sentences(self) -> list[str]:
        """The plan in plain words, with its figures."""
        many = ", ".join(
            f"{levels:,} of {name!r}"
            for name, levels in zip(self.names, self.num_levels, strict=True)
        )
        which = "coefficient" if self.num_slopes == 1 else "coefficients"
        said = [
            f"Target: {self.num_parameters:,} parameters, {self.num_examples:,} examples; a mixed "
            f"model, whose levels ({many}) do not know of each other once the others are given."
        ]
        if self.num_shrunk:
            are = "is one" if self.num_shrunk == 1 else f"are {self.num_shrunk}"
            said.append(
                f"Of the {self.num_slopes} {which} there {are} with a horseshoe prior: local "
                "scales are drawn exactly, then the coefficients given them, and tau with local "
                "scales integrated out; no rows are needed for scales."
            )
        if not self.has_tests:
            return [
                *said,
                "Proposal: effects and coefficients are drawn exactly from sums by level, the "
                f"{self.num_slopes} {which} with the effects moving along, and the noise's scale "
                "too; scales of effects walk with whitened effects fixed (expected to accept "
                f"{_percent(self.scale_acceptance)}) and are drawn with effects fixed. No example "
                "is looked at again.",
            ]
        if len(self.names) > 1:
            said.append(
                "The means of the factors, which rows see only together, move by a proposal of "
                f"their own (expected to accept {_percent([self.mean_acceptance])}, "
                f"{self.mean_rows:.3g} examples)."
            )
        if self.num_turns > 1:
            said.append(
                f"What all levels share, the {which} above all, renews more slowly than the levels "
                f"do, and moves {self.num_turns} times in a sweep."
            )
        share = self.num_rows / self.num_examples
        compared = (
            f"A gradient over all data would look at {1.0 / share:,.0f} times as many, and one "
            "trajectory takes dozens of them."
            if share < 0.5
            else "That is no less than a gradient looks at: so few rows a level, or so large "
            "effects, leave little to save; the draws are exact all the same."
        )
        return [
            *said,
            "Proposal: all effects afresh from Gaussians about the reference, each level with a "
            f"test of its own (expected to accept {_percent(self.effect_acceptance)}); the "
            f"{self.num_slopes} {which} by a turn of {self.angle:.3g} with the effects moving "
            f"along ({_percent([self.acceptance])}); scales of effects with whitened effects "
            f"fixed ({_percent(self.scale_acceptance)}) and with effects fixed, which needs no "
            "example. No gradient is needed.",
            "Test: exact Metropolis-Hastings tests on a few examples each: about "
            f"{sum(self.effect_rows):.3g} for all effects together, "
            f"{self.num_turns * self.slope_rows:.3g} for the coefficients and "
            f"{sum(self.scale_rows):.3g} for the scales in a sweep. {compared}",
        ]

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def restored(self, target: Target, reference: Reference) -> Sampler:
        """The sampler of a stored run, about the position that it was set up at."""
        assert isinstance(target, Posterior)
        center: Any = reference.position
        place = {name: np.asarray(values) for name, values in center.items()}
        sweep = untuned_effects(target, sums_at(target, place))
        factors = tuple(
            dataclasses.replace(
                terms,
                stride=jnp.asarray(stride, jnp.float32),
                effect_spread=jnp.float32(one),
                scale_spread=jnp.float32(other),
            )
            for terms, stride, one, other in zip(
                sweep.factors, self.strides, self.effect_spreads, self.scale_spreads, strict=True
            )
        )
        means = sweep.means
        if means is not None:
            means = dataclasses.replace(means, spread=jnp.float32(self.mean_spread))
        sweep = dataclasses.replace(
            sweep,
            factors=factors,
            angle=jnp.float32(self.angle),
            block_size=self.block_size,
            slope_spread=jnp.float32(self.slope_spread),
            means=means,
            num_turns=self.num_turns,
        )
        return _sampler(target, sweep)


class PlannedEffects(NamedTuple):
    plan: EffectsPlan | Plan  # the latter where sweeps are not worth it
    sampler: Sampler
    starts: trees.PyTree  # stacked on a leading chain axis


def plan_effects(target: Target, num_chains: int, key: jax.Array) -> PlannedEffects | None:
    """The plan where it applies: a mixed model with bounds, or with Gaussian noise, whose rows are
    in memory or on this machine's disk.
    """
    if not isinstance(target, Posterior) or spread_in(target) is not None:
        return None
    likelihood, prior = target.log_likelihood, target.log_prior
    if not isinstance(likelihood, GroupedLikelihood) or not isinstance(prior, EffectsPrior):
        return None
    has_noise = likelihood.predictor.has_noise
    if (target.bounds is None and not has_noise) or target.domain is not None:
        return None
    init: Any = target.init
    if len(init[FIXED]) > MOST_SLOPES:
        return None
    sums = find_reference(target)
    if sums is None:
        return None
    tune_key, start_key = jax.random.split(key)
    found = tuned_effects(target, sums, tune_key)
    plan = _plan(target, found, num_chains)
    starts = _starts(target, found, num_chains, start_key)
    instead = plan_arrow(target, sums, plan, found)
    if instead is not None:
        return PlannedEffects(*instead, starts)
    return PlannedEffects(plan, _sampler(target, found.sweep), starts)


def _plan(target: Posterior, found: TunedEffects, num_chains: int) -> EffectsPlan:
    sweep, pilot = found.sweep, found.pilot
    forms = [terms.form for terms in sweep.factors]
    return EffectsPlan(
        num_parameters=trees.size(target.init),
        num_examples=target.num_examples,
        names=[form.name for form in forms],
        num_levels=[form.num_levels for form in forms],
        num_slopes=sweep.slope.shape[0],
        num_chains=num_chains,
        has_tests=sweep.bounds is not None,
        angle=float(sweep.angle),
        block_size=sweep.block_size,
        slope_spread=float(sweep.slope_spread),
        effect_spreads=[float(terms.effect_spread) for terms in sweep.factors],
        scale_spreads=[float(terms.scale_spread) for terms in sweep.factors],
        strides=[np.asarray(terms.stride).tolist() for terms in sweep.factors],
        acceptance=float(pilot.acceptance),
        effect_acceptance=list(map(float, pilot.effect_rates)),
        scale_acceptance=list(map(float, pilot.scale_rates)),
        slope_rows=float(pilot.slope_rows),
        effect_rows=list(map(float, pilot.effect_rows)),
        scale_rows=list(map(float, pilot.scale_rows)),
        mean_spread=0.0 if sweep.means is None else float(sweep.means.spread),
        mean_acceptance=float(pilot.mean_rate),
        mean_rows=float(pilot.mean_rows),
        num_turns=sweep.num_turns,
        num_shrunk=0 if sweep.shrunk is None else sweep.shrunk.prior.places.shape[0],
    )


def _sampler(target: Posterior, sweep: EffectSweep) -> Sampler:
    still: Any = Rest()
    return Sampler(target, still, full_gradient(), sweep, 1, True)


def _starts(
    target: Posterior, found: TunedEffects, num_chains: int, key: jax.Array
) -> trees.PyTree:
    """Coefficients and scales wider than they are, effects given those."""
    widths = tuple(map(jnp.asarray, found.pilot.scale_widths))
    keys = jax.random.split(key, num_chains)
    return positions_of(
        found.sweep, gaussian_states(target, found.sweep, keys, jnp.float32(FAR), widths)
    )


def _percent(rates: list[float]) -> str:
    return ", ".join(f"{100.0 * rate:.0f}%" for rate in rates)
