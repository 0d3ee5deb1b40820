"""The step size that gives a wanted acceptance: dual averaging to get there, Robbins-Monro to get
it right.

Dual averaging (Hoffman and Gelman, 2014) crosses four orders of magnitude in some twenty
transitions and then settles a little above the wanted acceptance; a Robbins-Monro average of the
last part removes that.
"""

from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.typing import ArrayLike

SHRINKAGE = 0.05  # gamma
STABILITY = 10.0  # t_0
FORGETTING = 0.75  # kappa
CENTRE = 10.0  # mu = log(10 epsilon_0): errs on the side of large steps, which are cheap to try
POLISH_GAIN = 2.0
POLISH_DELAY = 5.0
POLISH_DECAY = 0.6
LARGEST = 60.0  # |log epsilon| stays below this, so that the exponential never overflows

KEEP, SEARCH, POLISH = 0, 1, 2


class StepSize(NamedTuple):
    """The search so far; every field is one float32 number, or one for each of several blocks."""

    log_step: jax.Array  # of the next transition
    log_average: jax.Array  # what it would be frozen at
    centre: jax.Array  # mu
    error: jax.Array  # H-bar, the average shortfall of the acceptance
    num_seen: jax.Array  # m
    average_from: jax.Array  # the polish averages from this transition on


def start_search(step_size: ArrayLike) -> StepSize:
    """Begin at a step size."""
    # in NumPy, because every operation of JAX on its own is a program to compile
    log_step = np.log(np.asarray(step_size, np.float32))
    none = np.zeros_like(log_step)
    fields = (log_step, log_step, log_step + np.log(np.float32(CENTRE)), none, none, none)
    return StepSize(*(jax.device_put(np.asarray(value, np.float32)) for value in fields))


def start_polish(step_size: ArrayLike, num_transitions: int) -> StepSize:
    """Begin the last part at a step size; its second half is averaged."""
    return start_search(step_size)._replace(
        average_from=jax.device_put(np.full(np.shape(step_size), num_transitions // 2, np.float32))
    )


def update(step: StepSize, stage: ArrayLike, acceptance: ArrayLike, wanted: ArrayLike) -> StepSize:
    """The search after one more transition, whose acceptance was averaged over the chains."""
    searched, polished = _search(step, acceptance, wanted), _polish(step, acceptance, wanted)
    return jax.tree.map(
        lambda kept, *moved: jnp.select([stage == SEARCH, stage == POLISH], moved, kept),
        step,
        searched,
        polished,
    )


def _search(step: StepSize, acceptance: Any, wanted: Any) -> StepSize:
    count = step.num_seen + 1.0
    # H-bar_m = (1 - 1/(m + t_0)) H-bar_{m-1} + (delta - alpha_m) / (m + t_0)
    share = 1.0 / (count + STABILITY)
    error = (1.0 - share) * step.error + share * (wanted - acceptance)
    # log epsilon_{m+1} = mu - (sqrt(m) / gamma) H-bar_m
    log_step = jnp.clip(step.centre - jnp.sqrt(count) / SHRINKAGE * error, -LARGEST, LARGEST)
    # log epsilon-bar = m^-kappa log epsilon + (1 - m^-kappa) log epsilon-bar
    weight = count**-FORGETTING
    return step._replace(
        log_step=log_step,
        log_average=weight * log_step + (1.0 - weight) * step.log_average,
        error=error,
        num_seen=count,
    )


def _polish(step: StepSize, acceptance: Any, wanted: Any) -> StepSize:
    count = step.num_seen + 1.0
    # log epsilon_{m+1} = log epsilon_m + g / (m + m_0)^0.6 (alpha_m - delta)
    gain = POLISH_GAIN / (count + POLISH_DELAY) ** POLISH_DECAY
    log_step = jnp.clip(step.log_step + gain * (acceptance - wanted), -LARGEST, LARGEST)
    averaged = jnp.maximum(count - step.average_from, 1.0)
    average = step.log_average + (log_step - step.log_average) / averaged
    log_average = jnp.where(count > step.average_from, average, log_step)
    return step._replace(log_step=log_step, log_average=log_average, num_seen=count)
