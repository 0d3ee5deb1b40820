"""A warm-up that is tuned between blocks, with the very program that draws: for a plan that is
nearly right from the start.

Tuning inside the block (`adapt`) crosses orders of magnitude, and needs a program of its own, which
takes seconds to compile.
"""

import jax
import numpy as np

from amagold.adaptation import _dual_averaging as step_size
from amagold.adaptation._mass_settings import step_sizes
from amagold.adaptation._window_adaptation import Progress, Rules, Trace, mass_scale_of
from amagold.adaptation._windows import NUM_BLOCKS
from amagold.core.compiling import ONCE, jit
from amagold.runner._broken_bounds import check_bounds
from amagold.runner._chunked_run import run_chunks
from amagold.samplers import Sampler

SHORT = 0.125  # of a step, which chains come in by from far out


def next_block(at: Progress, key: jax.Array, rules: Rules) -> tuple[Progress, Trace]:
    """One block with the settings as they are; the step size then follows the block's
    acceptance.
    """
    count = min(block_transitions(rules.num_warmup), rules.num_warmup - at.done)
    is_coming_in = rules.begins_short and at.done == 0
    used, running = step_sizes(at.sampler), at.sampler
    if is_coming_in:
        assert used is not None
        used = np.float32(SHORT) * used
        running = at.sampler.with_settings(step_size=jax.device_put(used))
    [(states, kept)] = run_chunks(
        running,
        key,
        at.states,
        count,
        first=at.done,
        keep_energy=True,
        at_once=block_transitions(rules.num_warmup),
    )
    check_bounds(kept.info)
    rates, divergent = np.asarray(kept.info.acceptance_rate), np.asarray(kept.info.is_divergent)
    sampler, step = at.sampler, at.step
    if rules.target_acceptance is not None and not is_coming_in:
        # what suits one Gaussian may be hopeless in another well: where turns are tuned, the chain
        # that accepts least counts
        rate = rates.mean(axis=0).min() if rules.begins_short else rates.mean()
        step = _update(
            step, np.int32(step_size.POLISH), np.float32(rate), np.float32(rules.target_acceptance)
        )
        done = at.done + count >= rules.num_warmup
        sampler = _with_step_size(
            sampler, np.asarray(step.log_average if done else step.log_step), rules
        )
    trace = Trace(
        # a sweep has no steps
        np.full(count, 1.0 if used is None else used, np.float32),
        rates,
        divergent,
        np.full(count, sampler.num_steps, np.int32),
        np.full(count, mass_scale_of(sampler), np.float32),
        jax.tree.map(np.asarray, kept.position) if rules.keep else (),
    )
    return Progress(at.done + count, sampler, states, step, at.moments), trace


_update = jit(ONCE)(step_size.update)


def block_transitions(num_warmup: int) -> int:
    """Of a warm-up that is tuned between blocks."""
    return max(1, num_warmup // NUM_BLOCKS)


def _with_step_size(sampler: Sampler, log_step: np.ndarray, rules: Rules) -> Sampler:
    """The sampler with another step size, no longer than the plan allows: past a quarter turn it
    comes back.
    """
    if rules.longest_trajectory is not None:
        log_step = np.minimum(log_step, np.log(rules.longest_trajectory / sampler.num_steps))
    return sampler.with_settings(step_size=jax.device_put(np.exp(np.float32(log_step))))
