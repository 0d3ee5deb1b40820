"""The warm-up: transitions that tune the sampler as they go, block by block, and can be stopped
between any two blocks.
"""

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.adaptation import _dual_averaging as step_size, _moments as moments
from amagold.adaptation._length_search import MOST_STEPS, nothing_learnt
from amagold.adaptation._mass_settings import log_scale, prepare_mass, step_sizes
from amagold.adaptation._warmup import Warmup
from amagold.adaptation._windows import NUM_BLOCKS, Stage, block_length, make_schedule
from amagold.batches._batch_plans import Iid
from amagold.core import trees
from amagold.gradients import Minibatch
from amagold.runner._block import Advanced, Hook
from amagold.runner._broken_bounds import check_bounds
from amagold.runner._layout import most_transitions, plan_layout
from amagold.runner._placed_chains import place
from amagold.samplers import BlockSampler, Info, Kernel, Sampler, State

# transitions: with fewer, the first wild tries would be all there is to freeze, so nothing is
# adapted
FEWEST = 20
COMING_IN = 0.1  # of the warm-up, in which chains come in from far out
LEAST = 1e-2  # acceptance of a chain that is stuck, in a harmonic mean
DEEPEST = 10.0  # in the log of the step size below where the search began
CORRELATED = 256  # parameters, up to which correlations are collected
LONGEST_DIRECTION = 4.0  # times a trajectory's length, that correlations may ask for
MAX_STEPS_CHANGE = 8.0  # the number of steps is rechosen within this factor of the planned one
TOLERATED_LENGTH = 0.25  # and only when the trajectory's length is off by more than this share


class Trace(NamedTuple):
    """How the warm-up went: a row for each transition, and a column for each chain where they
    differ.
    """

    step_size: Any
    acceptance_rate: Any  # a ratio that is not finite counts as 0
    is_divergent: Any
    num_steps: Any
    mass_scale: Any  # det(M^-1)^(1 / 2d): what a step moves a typical parameter by
    position: Any  # the draws, if they are kept


class Progress(NamedTuple):
    """Where a warm-up is: enough to go on from."""

    done: int
    sampler: Sampler
    states: State
    step: step_size.StepSize
    moments: Any  # `Moments`, or what a search has `Learnt`


class Rules(NamedTuple):
    """What is adapted, decided before the first transition."""

    num_warmup: int
    target_acceptance: float | None
    mass: str | None
    trajectory_length: float | None = None  # rechoose the number of steps to keep this length
    longest_trajectory: float | None = None  # that tuning between blocks may come to
    keep: bool = False
    # where tuning is between blocks: in the first of them come in from far out by small steps
    begins_short: bool = False
    # tune between blocks, with the program that draws too: for a start that is nearly right
    by_block: bool = False
    # while chains come in, one that is stuck counts more than the others; not for samplers that
    # were given, whose starts were too
    watches_stuck: bool = True
    searches: bool = False  # look for the number of steps too, and for a mass by gradients
    friction_share: float = 0.0  # T b, of such a search

    @property
    def stages(self) -> tuple[Stage, ...]:
        return make_schedule(
            self.num_warmup,
            adapts_step=self.target_acceptance is not None,
            adapts_mass=self.mass is not None,
        )


def make_rules(sampler: Kernel, num_warmup: int, warmup: Warmup) -> Rules:
    """The rules for a sampler that was given; raises where it has nothing to adapt."""
    if warmup.target_acceptance is not None and not sampler.uses_work:
        raise ValueError(
            f"target_acceptance needs a sampler with a test, got a {sampler.label} one that "
            "accepts everything; leave it out or use an "
            "exact sampler"
        )
    for name, wanted in (("step_size", warmup.target_acceptance), ("mass", warmup.mass)):
        if wanted is not None and (
            name not in sampler.settings or (name == "step_size" and step_sizes(sampler) is None)
        ):
            remedy = "leave it out of Warmup"
            raise ValueError(
                f"warmup cannot adapt the {name}: the sampler's proposal has no field {name!r} of "
                f"one number; {remedy}"
            )
    if num_warmup < FEWEST:
        return Rules(num_warmup, None, None, keep=warmup.keep)
    return Rules(
        num_warmup, warmup.target_acceptance, warmup.mass, keep=warmup.keep, watches_stuck=False
    )


def begin(sampler: Sampler, states: State, rules: Rules) -> Progress:
    """The warm-up before its first transition."""
    one = jax.tree.map(lambda leaf: np.asarray(leaf)[0], states.position)
    if rules.mass is not None:
        sampler = sampler.with_settings(
            mass=prepare_mass(sampler.settings["mass"], rules.mass, one)
        )
    # strong types, as they come back from a checkpoint: a Python number would compile another
    # program
    sampler = sampler.with_tuned(jax.tree.map(_strong, sampler.tuned))
    found = step_sizes(sampler)
    start = np.float32(1.0) if found is None else found
    size = trees.size(one)
    if rules.searches:
        # every number of steps is a part of the same program
        sampler = dataclasses.replace(sampler, num_steps=MOST_STEPS)
        return Progress(
            0, sampler, states, step_size.start_search(start), nothing_learnt(rules.mass, size)
        )
    step = (
        step_size.start_polish(start, NUM_BLOCKS)
        if rules.by_block
        else step_size.start_search(start)
    )
    return Progress(
        0,
        sampler,
        states,
        step,
        moments.no_moments(_collected(rules, size), size),
    )


def _strong(setting: Any) -> jax.Array:
    """A setting with a type of its own; by way of NumPy, which knows no weak types and compiles
    nothing.
    """
    return jax.device_put(
        np.asarray(setting, np.float32 if isinstance(setting, (int, float)) else None)
    )


def _collected(rules: Rules, size: int) -> str | None:
    """What moments are collected: of few parameters the correlations too, which say how long
    trajectories must be.
    """
    return (
        "dense"
        if rules.mass is not None and rules.trajectory_length is not None and size <= CORRELATED
        else rules.mass
    )


def advance_block(
    at: Progress, key: jax.Array, rules: Rules, stop: int, hook: Hook
) -> tuple[Advanced, int]:
    """A block of transitions that the hook follows, at most up to `stop`, and how many."""
    one = jax.tree.map(
        lambda leaf: jax.ShapeDtypeStruct(leaf.shape[1:], leaf.dtype), at.states.position
    )
    chains, states = place(at.sampler, key, at.states)
    most = most_transitions(at.sampler, one, len(chains.numbers) // chains.num_devices)
    length = block_length(rules.num_warmup, most)
    layout = plan_layout(at.sampler, states, length, 1, chains.num_devices, at_once=length)
    count = min(length, stop - at.done)
    kept = layout._replace(position=rules.keep)
    return chains.advance(states, at.done, count, kept, hook), count


def next_block(at: Progress, key: jax.Array, rules: Rules) -> tuple[Progress, Trace]:
    """One block further, and how it went."""
    stage = next(stage for stage in rules.stages if stage.start <= at.done < stage.stop)
    hook = _tuning(at, stage, rules)
    after, count = advance_block(at, key, rules, stage.stop, hook)
    tuning: Any = after.hook
    kept, used = jax.tree.map(lambda leaf: np.asarray(leaf)[:count], (after.kept, after.notes))
    check_bounds(kept.info)
    at = Progress(at.done + count, at.sampler, after.states, tuning.step, tuning.moments)
    trace = Trace(
        used,
        kept.info.acceptance_rate,
        kept.info.is_divergent,
        np.full(count, at.sampler.num_steps, np.int32),
        np.full(count, mass_scale_of(at.sampler), np.float32),
        kept.position,
    )
    return (_end_stage(at, stage, rules) if at.done == stage.stop else at), trace


def mass_scale_of(sampler: Sampler) -> float:
    return math.exp(log_scale(sampler.settings["mass"])) if ("mass" in sampler.settings) else 1.0


def _end_stage(at: Progress, stage: Stage, rules: Rules) -> Progress:
    """What was learnt in a stage takes effect for the next one; after the last, everything is
    frozen.
    """
    sampler, collected = at.sampler, at.moments
    if rules.target_acceptance is not None:
        sampler = sampler.with_settings(
            step_size=jax.device_put(np.exp(np.asarray(at.step.log_average)))
        )
    if stage.collects:
        earlier = sampler.settings["mass"]
        mass = moments.estimate_mass(collected, earlier)
        sampler = sampler.with_settings(mass=mass)
        if rules.target_acceptance is not None:
            # a step keeps the distance that it moves a typical parameter by
            kept = float(sampler.settings["step_size"]) * math.exp(
                log_scale(earlier) - log_scale(mass)
            )
            sampler = sampler.with_settings(step_size=jax.device_put(np.float32(kept)))
        # once, after the last estimate: every number of steps is a program to compile
        if not any(later.collects for later in rules.stages if later.start >= stage.stop):
            longest = moments.longest_direction(collected) if rules.mass == "diagonal" else 1.0
            sampler = _rechoose_num_steps(sampler, rules, longest)
        collected = moments.no_moments(
            _collected(rules, collected.mean.shape[0]), collected.mean.shape[0]
        )
    if at.done == rules.num_warmup or rules.target_acceptance is None:
        return at._replace(sampler=sampler, moments=collected)
    following = next(later for later in rules.stages if later.start == stage.stop)
    here, step = sampler.settings["step_size"], at.step
    if following.step_size == step_size.POLISH:
        step = step_size.start_polish(here, following.stop - following.start)
    elif stage.collects:  # another mass is another problem; without one the search just goes on
        step = step_size.start_search(here)
    return at._replace(sampler=sampler, step=step, moments=collected)


def _rechoose_num_steps(sampler: Sampler, rules: Rules, longest: float) -> Sampler:
    """T = tau / epsilon, where the plan gave a length and the batches allow any number of steps.

    A trajectory as long as one parameter is wide is too short for a direction that is `longest`
    times as wide.
    """
    if rules.trajectory_length is None or (
        isinstance(sampler.gradient, Minibatch) and not isinstance(sampler.gradient.plan, Iid)
    ):
        return sampler
    step = float(sampler.settings["step_size"])
    length = rules.trajectory_length * min(longest, LONGEST_DIRECTION)
    if abs(sampler.num_steps * step / length - 1.0) <= TOLERATED_LENGTH:
        return sampler
    low, high = max(1.0, sampler.num_steps / MAX_STEPS_CHANGE), sampler.num_steps * MAX_STEPS_CHANGE
    num_steps = round(min(max(length / step, low), high))
    return dataclasses.replace(sampler, num_steps=num_steps)


@trees.record(static=("adapts",))
class Tuning(Hook):
    """Tunes as the block goes: what is learnt, and what the stage asks for."""

    step: step_size.StepSize
    moments: moments.Moments
    stage: jax.Array
    collects: jax.Array
    wanted: jax.Array  # acceptance
    turn: jax.Array
    coming_in: jax.Array  # turns, in which chains come in from far out
    adapts: bool  # the step size

    def before(self, sampler: Sampler) -> Sampler:
        if not self.adapts:
            return sampler
        return sampler.with_settings(step_size=jnp.exp(self.step.log_step))

    def after(
        self, sampler: Sampler, earlier: State, states: State, info: Info, axis_name: str | None
    ) -> tuple["Tuning", jax.Array]:
        """The tuning after a transition, which is noted with the step size that it used."""
        step = self.step
        if self.adapts:
            # one step size, or one for each block
            rates = _rates_of_all(sampler, info, self.wanted)
            rate = common_rate(rates, step, self.turn < self.coming_in, axis_name)
            step = step_size.update(step, self.stage, rate, self.wanted)
        collected = moments.update(self.moments, self.collects, states.position, axis_name)
        following = dataclasses.replace(self, step=step, moments=collected, turn=self.turn + 1)
        return following, jnp.exp(self.step.log_step)


def common_rate(
    rates: jax.Array, step: step_size.StepSize, coming_in: jax.Array, axis_name: str | None
) -> jax.Array:
    """One acceptance for all chains, whose rates are on the leading axis: the mean. While they come
    in the harmonic mean, which a chain that is stuck brings near zero: a step that suits the others
    may fly from a steep slope out of the other side of the posterior.
    """

    def over_chains(values: jax.Array) -> jax.Array:
        return values if axis_name is None else jax.lax.psum(values, axis_name)

    count = over_chains(jnp.float32(rates.shape[0]))
    mean = over_chains(jnp.sum(rates, axis=0)) / count
    harmonic = count / over_chains(jnp.sum(1.0 / jnp.maximum(rates, LEAST), axis=0))
    # one that no step brings in must not keep the others from going
    is_deep = step.log_step < step.centre - DEEPEST
    return jnp.where(coming_in & ~is_deep, harmonic, mean).astype(jnp.float32)


def _tuning(at: Progress, stage: Stage, rules: Rules) -> Tuning:
    wanted = rules.target_acceptance
    asked = (
        np.int32(stage.step_size),
        np.bool_(stage.collects),
        np.float32(wanted or 0.0),
        np.int32(at.done),
        np.int32(COMING_IN * rules.num_warmup if rules.watches_stuck else 0),
    )
    return Tuning(at.step, at.moments, *jax.device_put(asked), adapts=wanted is not None)


def _rates_of_all(sampler: Kernel, info: Info, wanted: jax.Array) -> jax.Array:
    """The acceptance of each chain, and of each block whose step size is adapted."""
    if not isinstance(sampler, BlockSampler):
        return outside_counted(sampler, info, wanted)
    by_block = [outside_counted(sampler, info.blocks[name], wanted) for name in sampler.tunable]
    return jnp.stack(by_block, axis=-1)


def outside_counted(sampler: Kernel, info: Info, wanted: jax.Array) -> jax.Array:
    """The acceptance that the step size is adapted by.

    No step is small enough to stay inside a wall's domain from next to it, so a proposal outside
    counts as 1 - 2 (1 - wanted): up to half of them may be.
    """
    if sampler.target.domain is None:
        return info.acceptance_rate
    is_outside = (info.log_ratio == -jnp.inf) & ~info.is_divergent
    return jnp.where(is_outside, jnp.maximum(1.0 - 2.0 * (1.0 - wanted), 0.0), info.acceptance_rate)
