"""Draws part by part leave the posterior as it is: a horseshoe on one coefficient, against
quadrature.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from false_alarms import PLANTED, threshold

import amagold
from amagold.core import trees
from amagold.target._horseshoe import Horseshoe
from amagold.trajectory import Phase
from amagold.trajectory._conditional_draws import ConditionalDraws

SCALE, CENTER, CURVATURE, SKEW = 0.5, 0.6, 6.0, 0.5
GRID, LOG_TAU = np.linspace(-4.0, 5.0, 4001) + 1e-7, np.linspace(-14.0, 9.0, 401)
NUM_CHAINS, NUM_TRANSITIONS = 2000, 60


def shrunk(size=1):
    return Horseshoe(
        jnp.arange(size),
        jnp.zeros(size, jnp.int32),
        jnp.ones(size),
        jnp.array([SCALE]),
        jnp.zeros(1),
        1,
    )


def log_likelihood(beta):
    """Not a Gaussian: a logistic term bends it."""
    return -0.5 * CURVATURE * (beta - CENTER) ** 2 - SKEW * jnp.logaddexp(0.0, 4.0 * beta)


def log_density(position):
    return shrunk()(position) + log_likelihood(position[0])


def without_jacobian(position):
    return log_density(position) - position[1]


def proposal(num_kicks):
    """About a place that is not the mode, with a curvature that is not the likelihood's."""
    at = jnp.float32(0.3)
    slope = -jax.grad(log_likelihood)(at)
    return ConditionalDraws(
        jnp.float32(1.2),
        shrunk(),
        at[None],
        slope[None],
        jnp.array([[(4.0 if num_kicks else 1.3) * CURVATURE]]),
        num_kicks,
        not num_kicks,
    )


def truth(function):
    """Moments by quadrature."""
    of_all = jax.jit(jax.vmap(jax.vmap(function, (0, None)), (None, 0)))
    values = np.asarray(
        of_all(jnp.asarray(GRID, jnp.float32), jnp.asarray(LOG_TAU, jnp.float32)), np.float64
    )
    weights = np.exp(values - values.max())
    weights /= weights.sum()
    beta, log_tau = np.meshgrid(GRID, LOG_TAU)
    return np.array([np.sum(weights * each) for each in features(beta, log_tau)])


def features(beta, log_tau):
    return [beta, beta**2, np.abs(beta) < 0.05, log_tau, log_tau**2, log_tau < -2.0]


def of_two(function):
    return lambda beta, log_tau: function(jnp.stack([beta, log_tau]))


def deviation(wanted, own, num_steps=2):
    """Of independent chains' ends, as a share of the threshold."""
    target = amagold.Density(log_density, init=np.zeros(2, np.float32))
    sampler = amagold.amortized(target, own, num_steps)
    generator = np.random.default_rng(4)
    starts = np.stack(
        [generator.normal(0.5, 0.3, NUM_CHAINS), generator.normal(-1.0, 1.0, NUM_CHAINS)], axis=-1
    )
    states = jax.vmap(sampler.init)(jnp.asarray(starts, jnp.float32))

    @jax.jit
    def run(states, key):
        def step(states, key):
            keys = jax.random.split(key, NUM_CHAINS)
            states, info = jax.vmap(sampler.step)(keys, states)
            return states, info.acceptance_rate

        return jax.lax.scan(step, states, jax.random.split(key, NUM_TRANSITIONS))

    states, rates = run(states, jax.random.key(2))
    assert 0.4 < float(rates.mean()) < (1.0 if own.num_kicks else 0.995)  # some are rejected
    ends = np.asarray(states.position, np.float64)
    seen = np.stack(features(ends[:, 0], ends[:, 1]), axis=-1)
    error = seen.std(axis=0, ddof=1) / np.sqrt(NUM_CHAINS)
    return float(np.max(np.abs(seen.mean(axis=0) - wanted) / error) / threshold(len(wanted)))


@pytest.mark.slow
@pytest.mark.parametrize("num_kicks", [0, 3])
def test_draws_are_those_of_the_posterior(num_kicks):
    own = proposal(num_kicks)
    wanted = truth(of_two(log_density))
    assert deviation(wanted, own) < 1.0
    # a Jacobian of log tau that is left out would be seen
    assert deviation(truth(of_two(without_jacobian)), own) > PLANTED
    # and so would work that is forgotten
    broken = WithoutKicks if num_kicks else WithoutWork
    fields = {field.name: getattr(own, field.name) for field in dataclasses.fields(own)}
    assert deviation(wanted, broken(**fields)) > PLANTED


@trees.record()
class WithoutWork(ConditionalDraws):
    """A step that forgets what it owes for the expansion."""

    def step(self, phase, noise, gradient):
        return super().step(phase, noise, gradient)[0], jnp.float32(0.0)


@trees.record()
class WithoutKicks(ConditionalDraws):
    """A step that forgets what it owes for the kicks."""

    def step(self, phase, noise, gradient):
        end, _ = super().step(phase, noise, gradient)
        energies = [self.energy(*self.horseshoe.split(at)) for at in (phase.position, end.position)]
        return end, energies[1] - energies[0]


@pytest.mark.slow
def test_work_is_what_the_expansion_changes_by():
    """Without kicks: log pi^(x) - log pi^(y), and the sum over steps telescopes."""
    own, at = proposal(0), jnp.array([0.4, -1.0])
    keys = jax.random.split(jax.random.key(0), 5)
    total, begin = 0.0, own.energy(*own.horseshoe.split(at))
    for key in keys:
        end, work = own.step(Phase(at), own.draw(key, at), lambda position: position)
        total, at = total + float(work), end.position
    assert total == pytest.approx(float(own.energy(*own.horseshoe.split(at)) - begin), abs=1e-4)


def test_afresh_forgets_where_it_came_from():
    """With a quarter turn and given scales, the coefficient does not depend on the last one."""
    own = dataclasses.replace(proposal(0), step_size=jnp.float32(0.5 * np.pi))
    noise = own.draw(jax.random.key(3), jnp.zeros(2))
    found = [
        own._turned(jnp.array([beta]), jnp.array([-1.0]), noise, lambda at: at, jnp.zeros(2))[0]
        for beta in (0.2, -0.2)  # of one square, so that the local scale is the same
    ]
    np.testing.assert_allclose(found[0], found[1], atol=1e-6)


def test_positions_of_another_size_are_refused():
    with pytest.raises(ValueError, match="center must be like the position"):
        proposal(0).check(jnp.zeros(3))
    assert trees.size(jnp.zeros(2)) == 2
