"""Exact draws stay exact under every exact sampler; planted bugs are seen by the same test."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from broken_samplers import OtherWork, TooLoud, broken_samplers, with_proposal
from doubles import some_of
from exact_samplers import domain_samplers, exact_samplers
from exact_target import exact_draws, features, move
from false_alarms import PLANTED, worst

from amagold.trajectory import Thermostatted

NUM_CHAINS = 200_000
MANY = 8
# every plan, proposal and kind of mass once, either with a fresh momentum or a kept one
SOME_EXACT = [
    "amagold reversible iid",
    "amagold reversible palindrome",
    "amagold irreversible epoch",
    "amagold irreversible loader",
    "amagold irreversible dense mass",
    "amagold irreversible arrow mass",
    "amagold irreversible jitter",
    "amagold irreversible some steps",
    "rotation irreversible",
    "user's skew proposal irreversible",
    "sgnht corrected irreversible",
    "blocks of two tests",
    "hmc",
    "sgld corrected",
]


def shift(before, states):
    """How far the features of the chains moved, chain by chain: zero on average when the
    distribution stands still.
    """
    return np.asarray(jax.jit(features)(states.position) - jax.jit(features)(jnp.asarray(before)))


def momentum_features(states):
    """Moments of a kept momentum, and of a thermostat that goes with it, against those of
    N(0, I).
    """
    momentum = states.momentum
    if isinstance(momentum, Thermostatted):
        momentum = jnp.concatenate([momentum.momentum, momentum.thermostat[:, None]], axis=1)
    first, second, last = momentum[:, 0], momentum[:, 1], momentum[:, -1]
    squares = [first**2 - 1.0, second**2 - 1.0, last**2 - 1.0]
    return np.asarray(jnp.stack([first, second, last, *squares, first * second], axis=-1))


@pytest.mark.few(4)
@pytest.mark.parametrize("name", some_of(exact_samplers(), *SOME_EXACT))
def test_exact_draws_stay_exact(name):
    draws = exact_draws(NUM_CHAINS)
    after_one, after_many, info = move(exact_samplers()[name], draws, MANY, seed=1)
    assert 0.15 < float(info.acceptance_rate.mean()) < 0.999, (
        "the test says little when nothing or everything is accepted"
    )
    for states in (after_one, after_many):
        assert worst(shift(draws, states)) < 1.0
        if isinstance(states.momentum, (jax.Array, Thermostatted)):
            assert worst(momentum_features(states)) < 1.0


@pytest.mark.parametrize("name", some_of(domain_samplers(), "amagold irreversible domain"))
def test_a_wall_is_honoured_exactly(name):
    draws = exact_draws(NUM_CHAINS, inside_upper_half=True)
    _, states, info = move(domain_samplers()[name], draws, MANY, seed=2)
    assert float(jnp.min(states.position[:, 1])) > 0.3
    assert not bool(info.is_divergent.any()), "outside the domain is a plain rejection"
    assert float(jnp.isneginf(info.log_ratio).mean()) > 0.01
    assert worst(shift(draws, states)) < 1.0


@pytest.mark.few(3)
@pytest.mark.parametrize(
    "name",
    # every third of the irreversible ones here, all of them among the slow tests
    some_of(
        broken_samplers(), *[name for name in broken_samplers() if name.startswith("irr")][::3]
    ),
)
def test_planted_bugs_are_seen(name):
    draws = exact_draws(NUM_CHAINS)
    _, states, _ = move(broken_samplers()[name], draws, MANY, seed=3)
    seen = worst(shift(draws, states))
    if isinstance(states.momentum, Thermostatted):
        seen = max(seen, worst(momentum_features(states)))
    assert seen > PLANTED


def mean_ratio_deviation(sampler):
    """E[exp(log a)] = 1 at stationarity, because the reversed paths have total probability one."""
    _, _, info = move(sampler, exact_draws(NUM_CHAINS), 1, seed=6)
    ratio = np.exp(np.asarray(info.log_ratio, np.float64))
    assert ratio.var() < 20.0, "a heavy tail would hide a wrong mean"
    return worst(ratio, expected=1.0)


@pytest.mark.parametrize(
    "name",
    some_of(
        exact_samplers(), "amagold irreversible iid", "rotation irreversible", "sgld corrected"
    ),
)
def test_the_mean_ratio_is_one(name):
    assert mean_ratio_deviation(exact_samplers(scale=0.4)[name]) < 1.0


@pytest.mark.parametrize(("kind", "step_size"), [(TooLoud, 0.02), (OtherWork, 0.04)])
def test_planted_bugs_break_the_mean_ratio(kind, step_size):
    assert mean_ratio_deviation(with_proposal(kind, True, step_size, 2.0)) > PLANTED


@pytest.mark.slow
@pytest.mark.parametrize("name", exact_samplers())
def test_exact_draws_stay_exact_with_twenty_times_the_chains(name):
    draws = exact_draws(4_000_000)
    for part in range(4):
        _, states, _ = move(exact_samplers()[name], draws[part::4], MANY, seed=50 + part)
        assert worst(shift(draws[part::4], states)) < 1.0
