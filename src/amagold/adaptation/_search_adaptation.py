"""A warm-up that looks for everything: step size, mass and number of steps, for posteriors of
which nothing is known beforehand.

With one test per trajectory L2MC is MALT (Riou-Durand and Vogrinc, 2022), and this tunes what
Adaptive MALT does (arXiv 2210.12200), by trials instead of gradients: chains are few, and a
criterion's gradient is as noisy as its values are not.
"""

import dataclasses
import math
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.adaptation import (
    _dual_averaging as step_size,
    _length_search as lengths,
    _moments as moments,
)
from amagold.adaptation._fisher_mass import fisher_mass
from amagold.adaptation._length_search import Learnt, nothing_learnt
from amagold.adaptation._mass_settings import log_scale
from amagold.adaptation._window_adaptation import (
    COMING_IN,
    Progress,
    Rules,
    Trace,
    advance_block,
    common_rate,
    mass_scale_of,
    outside_counted,
)
from amagold.adaptation._windows import SearchStage, make_search_schedule
from amagold.core import trees
from amagold.gradients import full
from amagold.runner._block import Hook
from amagold.runner._broken_bounds import check_bounds
from amagold.samplers import Info, Sampler, State

# what a divergence takes off the acceptance: walls and necks ask for smaller steps than a plain
# acceptance does
DIVERGENCE = 4.0
# of the rejections, that are wanted where trials diverged all the same
CAREFUL = 0.25


@trees.record()
class Searching(Hook):
    """Tunes as the block goes: what is learnt, and what the stage asks for."""

    step: step_size.StepSize
    learnt: Learnt
    stage: jax.Array
    collects: jax.Array
    tries: jax.Array
    wanted: jax.Array  # acceptance
    friction_share: jax.Array  # T b
    turn: jax.Array
    coming_in: jax.Array  # turns, in which chains come in from far out

    def before(self, sampler: Sampler) -> Sampler:
        steps = lengths.steps_now(self.learnt.search, self.tries)
        size = jnp.exp(self.step.log_step)
        friction = self.friction_share / (steps.astype(jnp.float32) * size)
        tuned = sampler.with_settings(step_size=size, friction=friction)
        return dataclasses.replace(tuned, first_steps=steps)

    def after(
        self, sampler: Sampler, earlier: State, states: State, info: Info, axis_name: str | None
    ) -> tuple["Searching", tuple[jax.Array, jax.Array]]:
        """The tuning after a transition, which is noted with its step size and number of steps."""
        rates = outside_counted(sampler, info, self.wanted)
        # a search that crosses orders of magnitude would be thrown back by each of them
        rates -= DIVERGENCE * info.is_divergent * (self.stage == step_size.POLISH)
        rate = common_rate(rates, self.step, self.turn < self.coming_in, axis_name)
        step = step_size.update(self.step, self.stage, rate, self.wanted)
        following = dataclasses.replace(
            self,
            step=step,
            turn=self.turn + 1,
            learnt=self._learn(sampler, earlier, states, info, axis_name),
        )
        used = lengths.steps_now(self.learnt.search, self.tries)
        return following, (jnp.exp(self.step.log_step), used)

    def _learn(
        self, sampler: Sampler, earlier: State, states: State, info: Info, axis_name: str | None
    ) -> Learnt:
        draws, slopes, search = self.learnt
        moved = (earlier.position, states.position, info.is_divergent)
        search = lengths.update(search, self.tries, *moved, axis_name)

        def gradient(position: trees.PyTree) -> trees.PyTree:
            return full().estimate(sampler.target, position, (), ())

        # a gradient more per transition, where it is needed
        found = jax.lax.cond(
            self.collects,
            lambda positions: jax.vmap(gradient)(positions),
            lambda positions: jax.tree.map(jnp.zeros_like, positions),
            states.position,
        )
        # a draw counts in both or in neither
        is_usable = self.collects & trees.all_finite(found)
        if axis_name is not None:
            is_usable = jax.lax.pmin(is_usable.astype(jnp.int32), axis_name) > 0
        return Learnt(
            moments.update(draws, is_usable, states.position, axis_name),
            moments.update(slopes, is_usable, found, axis_name),
            search,
        )


def next_block(at: Progress, key: jax.Array, rules: Rules) -> tuple[Progress, Trace]:
    """One block further, and how it went."""
    stages = make_search_schedule(rules.num_warmup)
    stage = next(stage for stage in stages if stage.start <= at.done < stage.stop)
    after, count = advance_block(at, key, rules, stage.stop, _searching(at, stage, rules))
    hook: Any = after.hook
    kept, (sizes, steps) = jax.tree.map(
        lambda leaf: np.asarray(leaf)[:count], (after.kept, after.notes)
    )
    check_bounds(kept.info)
    at = Progress(at.done + count, at.sampler, after.states, hook.step, hook.learnt)
    trace = Trace(
        sizes,
        kept.info.acceptance_rate,
        kept.info.is_divergent,
        steps,
        np.full(count, mass_scale_of(at.sampler), np.float32),
        kept.position,
    )
    return (_end_stage(at, stage, stages, rules) if at.done == stage.stop else at), trace


def _searching(at: Progress, stage: SearchStage, rules: Rules) -> Searching:
    assert isinstance(at.moments, Learnt)
    assert rules.target_acceptance is not None
    rejected = 1.0 - rules.target_acceptance
    asked = (
        np.int32(stage.step_size),
        np.bool_(stage.collects),
        np.bool_(stage.tries > 0),
        np.float32(1.0 - rejected * (CAREFUL if at.moments.search.is_careful else 1.0)),
        np.float32(rules.friction_share),
        np.int32(at.done),
        np.int32(COMING_IN * rules.num_warmup),
    )
    return Searching(at.step, at.moments, *jax.device_put(asked))


def _end_stage(
    at: Progress, stage: SearchStage, stages: tuple[SearchStage, ...], rules: Rules
) -> Progress:
    """What was learnt in a stage takes effect for the next one; after the last, everything is
    frozen.
    """
    assert isinstance(at.moments, Learnt)
    draws, slopes, search = at.moments
    size, sampler = float(np.exp(np.asarray(at.step.log_average))), at.sampler
    center = np.asarray(search.center)
    if stage.collects:
        earlier = sampler.settings["mass"]
        mass = fisher_mass(draws, slopes, earlier)
        # a step keeps the distance that it moves a typical parameter by
        size *= math.exp(log_scale(earlier) - log_scale(mass))
        sampler = sampler.with_settings(mass=mass)
        center = np.asarray(draws.mean)
    if stage.tries:
        # few and many steps differ in what diverges; those about the best decide
        is_careful = stage.tries == 2 and lengths.meets_walls(search)
        found = np.int32(lengths.best(search)), np.bool_(is_careful)
        num_steps, is_careful = jax.device_put(found)
        search = search._replace(num_steps=num_steps, is_careful=is_careful)
    earlier_size = float(sampler.settings["step_size"])
    sampler = sampler.with_settings(step_size=jax.device_put(np.float32(size)))
    if at.done == rules.num_warmup:
        if search.is_careful:
            # trajectories stay as long as they were found to be best
            steps = round(int(search.num_steps) * earlier_size / size)
            steps = min(max(steps, int(search.num_steps)), lengths.MOST_STEPS)
            search = search._replace(num_steps=jax.device_put(np.int32(steps)))
        return at._replace(sampler=_frozen(sampler, search, rules))
    following = next(later for later in stages if later.start == stage.stop)
    tried = lengths.finer(int(search.num_steps)) if following.tries == 2 else lengths.COARSE
    step = at.step
    if following.step_size == step_size.POLISH:
        step = step_size.start_polish(size, following.stop - following.start)
    elif stage.collects:
        step = step_size.start_search(size)
    fresh = nothing_learnt(rules.mass, len(center))
    learnt = fresh._replace(search=lengths.begin_trials(search, tried, center))
    return at._replace(sampler=sampler, step=step, moments=learnt)


def _frozen(sampler: Sampler, search: lengths.LengthSearch, rules: Rules) -> Sampler:
    """The sampler that draws: as many steps as were found, in a program of their own."""
    steps = int(search.num_steps)
    length = np.float32(steps) * np.asarray(sampler.settings["step_size"], np.float32)
    friction = jax.device_put(np.float32(rules.friction_share) / length)
    return dataclasses.replace(sampler.with_settings(friction=friction), num_steps=steps)
