"""The plan for a posterior with one factor of very many levels: a sweep in which each level has a
test of its own.
"""

import dataclasses
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.acceptance._group_setup import Typical, group_sweep, untuned_sweep
from amagold.acceptance._group_sweep import GroupSweep, SweepMemory
from amagold.core import trees
from amagold.data import InMemory
from amagold.gradients import full as full_gradient
from amagold.mode._arrow import arrow_at, arrow_mode, is_gaussian, layout_of
from amagold.mode._mode_search import NEWTON_SPARSE
from amagold.mode._reference import Reference
from amagold.samplers import Sampler
from amagold.target import Posterior, Target
from amagold.trajectory._rest import Rest

MOST_SLOPES = 512  # whose Schur complement is factorised, and carried along by every level
FAR = 2.0  # posterior standard deviations from the mode, at which chains begin


@dataclass(frozen=True)
class SweepPlan:
    """A sweep over groups, as it was set up."""

    num_parameters: int
    num_examples: int
    num_groups: int
    num_slopes: int
    num_chains: int
    angle: float
    block_size: int
    group_spread: float
    slope_spread: float
    acceptance: float  # of the slopes, expected
    group_acceptance: float
    group_rows: float
    slope_rows: float

    @property
    def label(self) -> str:
        return "exact"

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> "SweepPlan":
        return cls(**stored)

    def sentences(self) -> list[str]:
        """The plan in plain words, with its figures."""
        slopes = "parameter" if self.num_slopes == 1 else "parameters"
        return [
            f"Target: {self.num_parameters} parameters, {self.num_examples} examples; "
            f"{self.num_groups} of the parameters are levels of one factor, which do not know of "
            "each other once the others are given, and the posterior has one mode.",
            "Proposal: all levels afresh from the Gaussians at the mode, each with a test of its "
            f"own (expected to accept {100.0 * self.group_acceptance:.0f}%), then the other "
            f"{self.num_slopes} {slopes} by a turn of {self.angle:.3g} with the levels moving "
            f"along (expected to accept {100.0 * self.acceptance:.0f}%). No gradient is needed.",
            "Test: exact Metropolis-Hastings tests on a few examples each: about "
            f"{self.group_rows:.3g} for all levels together and {self.slope_rows:.3g} for the "
            "others in a sweep.",
            "Tests of all parameters at once would accept hardly anything: what every level adds "
            "to the ratio would add up.",
        ]

    def __str__(self) -> str:
        return "\n".join(self.sentences())

    def restored(self, target: Target, reference: Reference) -> Sampler:
        """The sampler of a stored run, about the position that it was set up at."""
        assert isinstance(target, Posterior)
        assert target.bounds is not None
        layout = layout_of(target, target.bounds)
        assert layout is not None
        at = np.asarray(trees.flatten(reference.position), np.float64)
        sweep = untuned_sweep(target, target.bounds, arrow_at(target, target.bounds, layout, at))
        return _sampler(
            target,
            dataclasses.replace(
                sweep,
                angle=jnp.float32(self.angle),
                block_size=self.block_size,
                group_spread=jnp.float32(self.group_spread),
                slope_spread=jnp.float32(self.slope_spread),
            ),
        )


class PlannedSweep(NamedTuple):
    plan: SweepPlan
    sampler: Sampler
    starts: trees.PyTree  # stacked on a leading chain axis


def plan_sweep(target: Target, num_chains: int, key: jax.Array) -> PlannedSweep | None:
    """The plan where it applies: one large factor, few other parameters, Gaussian priors, one
    mode, and bounds on the likelihood.
    """
    if not isinstance(target, Posterior) or not isinstance(target.examples, InMemory):
        return None
    bounds = target.bounds
    if bounds is None or not target.has_one_mode or trees.size(target.init) <= NEWTON_SPARSE:
        return None
    layout = layout_of(target, bounds)
    if layout is None or len(layout.slopes) > MOST_SLOPES or not is_gaussian(target, layout):
        return None
    arrow = arrow_mode(target, bounds, layout)
    if arrow is None:
        return None
    sweep, typical = group_sweep(target, bounds, arrow)
    plan = _plan(target, sweep, typical, num_chains)
    return PlannedSweep(plan, _sampler(target, sweep), _starts(sweep, num_chains, key))


def _plan(target: Posterior, sweep: GroupSweep, typical: Typical, num_chains: int) -> SweepPlan:
    return SweepPlan(
        num_parameters=trees.size(target.init),
        num_examples=target.num_examples,
        num_groups=sweep.group_means.shape[0] - 1,
        num_slopes=sweep.slope_mean.shape[0],
        num_chains=num_chains,
        angle=float(sweep.angle),
        block_size=sweep.block_size,
        group_spread=float(sweep.group_spread),
        slope_spread=float(sweep.slope_spread),
        **{name: float(value) for name, value in typical.told().items()},
    )


def _sampler(target: Posterior, sweep: GroupSweep) -> Sampler:
    still: Any = Rest()
    return Sampler(target, still, full_gradient(), sweep, 1, True)


def _starts(sweep: GroupSweep, num_chains: int, key: jax.Array) -> trees.PyTree:
    """Draws of the Gaussian, wider than it is."""

    def one(key: jax.Array) -> trees.PyTree:
        slopes, groups = jax.random.split(key)
        away = jax.random.normal(slopes, sweep.slope_mean.shape)
        # of ten thousand some would be farther out than a chain comes home from in a warm-up
        near = jax.random.truncated_normal(groups, -2.0, 2.0, sweep.group_means.shape)
        drawn = sweep.group_widths * near
        memory = SweepMemory(sweep.slope_mean + FAR * away, sweep.group_means + FAR * drawn)
        return sweep.position(memory)

    return jax.jit(jax.vmap(one))(jax.random.split(key, num_chains))
