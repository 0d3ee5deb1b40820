"""Trusted draws to compare a sampler with: full-batch Hamiltonian Monte Carlo, written apart from
the samplers of this library.

Kick-drift-kick leapfrog, a test of its own and one energy per proposal; it shares with the samplers
the target alone. Many chains adapt together: their spread across chains is the scale of the
posterior.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.diagnose._test_functions import (
    Standardisation,
    measure,
    remember_total,
    unit_standardisation,
)
from amagold.energy._remembered_energy import Memory, log_density_difference
from amagold.gradients._full_gradient import energy_gradient
from amagold.target import Target

# the way of one transition in posterior standard deviations: a Gaussian's draws are then
# independent
TRAVEL = 0.5 * math.pi
MOST_STEPS = 64  # leapfrog steps of one transition, however small the steps must be at first
ACCEPTANCE = (0.6, 0.95)
NUM_ROUNDS = 6  # rounds of burn-in, each of which sets the scale anew
TRIAL = 4  # transitions to try a step size on
EXAMPLES_AT_ONCE = 2**23  # chains x examples that are looked at together


class ReferenceSettings(NamedTuple):
    """How the reference moves: a step size in units of the scale of each coordinate."""

    step_size: jax.Array | float
    scale: jax.Array


class ReferenceDraws(NamedTuple):
    """Chains that have settled, as far as their two halves can tell."""

    positions: jax.Array  # (chain, coordinate), at the end
    standardisation: Standardisation
    early: np.ndarray  # (chain, quantity): averages over the first half of what follows the burn-in
    late: np.ndarray  # the same over the second half
    # (chain, quantity): last minus first of that time, where a slow drift shows most
    drift: np.ndarray
    acceptance_rate: float


def run_reference(
    target: Target, position: trees.PyTree, flat: jax.Array, num_transitions: int, key: jax.Array
) -> ReferenceDraws:
    """Burn in for `num_transitions` from flattened starts, one per chain, then measure for as many,
    in two halves.
    """
    num_chains = len(flat)
    standardisation = jax.jit(unit_standardisation)(target, position)
    spread = jnp.std(flat, axis=0)
    settings = ReferenceSettings(1.0, jnp.where(spread > 0.0, spread, 1.0))
    at_once = max(1, min(num_chains, EXAMPLES_AT_ONCE // max(1, target.num_examples)))
    run = partial(_run, target, position, at_once=at_once)
    in_round = max(TRIAL, num_transitions // NUM_ROUNDS)
    for number in range(NUM_ROUNDS):
        key, trial_key, round_key = jax.random.split(key, 3)
        settings = _choose_step_size(run, settings, standardisation, flat, trial_key)
        flat, _, _ = run(settings, standardisation, flat, round_key, num_transitions=in_round)
        spread = jnp.std(flat, axis=0)
        # a coordinate on which no chain has moved yet keeps its scale; once the scale is known, the
        # step size is about one
        settings = ReferenceSettings(
            settings.step_size if number else 1.0, jnp.where(spread > 0.0, spread, settings.scale)
        )
    key, trial_key, first_key, second_key = jax.random.split(key, 4)
    settings = _choose_step_size(run, settings, standardisation, flat, trial_key)
    standardisation = _standardisation_of(target, position, standardisation, flat, at_once)
    half = max(1, num_transitions // 2)
    first = _measure_all(target, position, standardisation, flat, at_once)
    flat, early, _ = run(settings, standardisation, flat, first_key, num_transitions=half)
    flat, late, acceptance = run(settings, standardisation, flat, second_key, num_transitions=half)
    drift = np.asarray(
        _measure_all(target, position, standardisation, flat, at_once) - first, np.float64
    )
    return ReferenceDraws(
        flat,
        standardisation,
        np.asarray(early, np.float64),
        np.asarray(late, np.float64),
        drift,
        float(jnp.mean(acceptance)),
    )


def all_at(position: trees.PyTree, num_chains: int) -> jax.Array:
    """Flattened starts, all at one position."""
    return jnp.tile(trees.flatten(position)[None], (num_chains, 1))


def _choose_step_size(
    run: Callable[..., tuple],
    settings: ReferenceSettings,
    standardisation: Standardisation,
    flat: jax.Array,
    key: jax.Array,
) -> ReferenceSettings:
    """Halve or double the step size until the acceptance is neither low nor wasteful."""
    low, high = ACCEPTANCE
    direction = 0
    for number in range(60):
        _, _, acceptance = run(
            settings, standardisation, flat, jax.random.fold_in(key, number), num_transitions=TRIAL
        )
        found = float(jnp.mean(acceptance))
        wanted = -1 if found < low else 1 if found > high else 0
        if (
            wanted == 0
            or wanted == -direction
            or (wanted == 1 and float(settings.step_size) >= 1.0)
        ):
            break  # good, or it would go back and forth, or as large as is sensible
        direction = wanted
        settings = settings._replace(step_size=settings.step_size * 2.0**wanted)
    return settings


def _standardisation_of(
    target: Target,
    position: trees.PyTree,
    standardisation: Standardisation,
    flat: jax.Array,
    at_once: int,
) -> Standardisation:
    """Measure quantities from where the chains are now."""
    energies = np.asarray(_energies(target, position, standardisation, flat, at_once), np.float64)
    spread = np.asarray(jnp.std(flat, axis=0))
    energy_scale = float(energies.std())
    return Standardisation(
        origin=standardisation.origin,
        centre=jnp.mean(flat, axis=0),
        scale=jnp.asarray(np.where(spread > 0.0, spread, 1.0), flat.dtype),
        energy_centre=jnp.float32(energies.mean()),
        energy_scale=jnp.float32(energy_scale if energy_scale > 0.0 else 1.0),
    )


@partial(jax.jit, static_argnames=("at_once",))
def _energies(
    target: Target,
    like: trees.PyTree,
    standardisation: Standardisation,
    flat: jax.Array,
    at_once: int,
) -> jax.Array:
    return jax.lax.map(
        lambda one: standardisation.energy(target, remember_total(target, like, one)),
        flat,
        batch_size=at_once,
    )


@partial(jax.jit, static_argnames=("at_once",))
def _measure_all(
    target: Target,
    like: trees.PyTree,
    standardisation: Standardisation,
    flat: jax.Array,
    at_once: int,
) -> jax.Array:
    return jax.lax.map(
        lambda one: measure(target, standardisation, one, remember_total(target, like, one)),
        flat,
        batch_size=at_once,
    )


@partial(jax.jit, static_argnames=("at_once",))
def _run(
    target: Target,
    like: trees.PyTree,
    settings: ReferenceSettings,
    standardisation: Standardisation,
    flat: jax.Array,
    key: jax.Array,
    *,
    num_transitions: int | jax.Array,
    at_once: int,
) -> tuple[jax.Array, jax.Array, jax.Array]:
    """Transitions of every chain: where they end, the averages of their quantities, and their mean
    acceptance.

    The number of transitions is traced, so that one program serves trials, burn-in and measurement.
    """

    def one_chain(start: tuple[jax.Array, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
        chain, key = start

        def body(number: jax.Array, carry: tuple) -> tuple:
            flat, memory, total, accepted = carry
            flat, memory, acceptance = _transition(
                target, like, settings, jax.random.fold_in(key, number), flat, memory
            )
            return (
                flat,
                memory,
                total + measure(target, standardisation, flat, memory),
                accepted + acceptance,
            )

        memory = remember_total(target, like, chain)
        nothing = jnp.zeros_like(measure(target, standardisation, chain, memory))
        chain, _, total, accepted = jax.lax.fori_loop(
            0, num_transitions, body, (chain, memory, nothing, jnp.float32(0.0))
        )
        return chain, total / num_transitions, accepted / num_transitions

    return jax.lax.map(one_chain, (flat, jax.random.split(key, flat.shape[0])), batch_size=at_once)


def _transition(
    target: Target,
    like: trees.PyTree,
    settings: ReferenceSettings,
    key: jax.Array,
    flat: jax.Array,
    memory: Memory,
) -> tuple[jax.Array, Memory, jax.Array]:
    """One transition of Hamiltonian Monte Carlo in coordinates divided by their scale."""
    momentum_key, jitter_key, test_key = jax.random.split(key, 3)
    # a step size that varies from transition to transition has no resonance
    step = settings.step_size * jax.random.uniform(jitter_key, minval=0.8, maxval=1.2)
    num_steps = jnp.clip(
        jnp.ceil(TRAVEL / jnp.asarray(settings.step_size)).astype(jnp.int32), 1, MOST_STEPS
    )
    momentum = jax.random.normal(momentum_key, flat.shape, flat.dtype)

    def force(at: jax.Array) -> jax.Array:
        return -settings.scale * trees.flatten(
            energy_gradient(target, trees.unflatten_like(at, like))
        )

    # p <- p + (epsilon/2) f(theta);  theta <- theta + epsilon p;  p <- p + (epsilon/2) f(theta)
    def leapfrog(
        _: jax.Array, phase: tuple[jax.Array, jax.Array, jax.Array]
    ) -> tuple[jax.Array, jax.Array, jax.Array]:
        at, momentum, push = phase
        momentum = momentum + 0.5 * step * push
        at = at + step * settings.scale * momentum
        push = force(at)
        return at, momentum + 0.5 * step * push, push

    end, last, _ = jax.lax.fori_loop(0, num_steps, leapfrog, (flat, momentum, force(flat)))
    reached = remember_total(target, like, end)
    # log a = H - H*
    log_ratio = log_density_difference(target, reached, memory) + 0.5 * (
        jnp.sum(momentum**2) - jnp.sum(last**2)
    )
    is_usable = jnp.isfinite(log_ratio) & target.is_inside(trees.unflatten_like(end, like))
    acceptance = jnp.where(is_usable, jnp.exp(jnp.minimum(log_ratio, 0.0)), 0.0)
    is_accepted = jax.random.uniform(test_key) < acceptance
    return *trees.where(is_accepted, (end, reached), (flat, memory)), acceptance
