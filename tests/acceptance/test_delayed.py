"""Delayed acceptance: two stages make up the ratio, and only the second looks at the data. Draws:
`test_exactness_by_quadrature`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_target import exact_draws, move, target
from false_alarms import PLANTED, worst

import amagold
from amagold import acceptance, gradients
from amagold.gradients._full_gradient import energy_gradient

CENTER = np.array([0.1, 0.5], np.float32)
HERE, THERE = np.array([0.3, 0.4], np.float32), np.array([-0.1, 0.7], np.float32)
ALWAYS, NEVER = jnp.float32(-1e9), jnp.float32(0.0)  # logarithms of the uniform number


def decide(test, posterior, draws, work=0.0, here=HERE, there=THERE):
    return test.decide(posterior, draws, test.remember(posterior, here), there, jnp.float32(work))


@pytest.mark.parametrize("order", [1, 2])
def test_the_two_stages_make_up_the_whole_ratio(order):
    posterior = target()
    test = acceptance.delayed(order, CENTER).bind(posterior)
    second = float(decide(test, posterior, (ALWAYS, ALWAYS), 0.3).log_ratio)
    reference = test.reference
    step = reference.taylor_energy(
        reference.away(THERE), reference.order
    ) - reference.taylor_energy(reference.away(HERE), reference.order)
    first = 0.3 + float(posterior.log_prior(THERE) - posterior.log_prior(HERE) - step)
    np.testing.assert_allclose(
        first + second, 0.3 + amagold.energy.energy_difference(posterior, HERE, THERE), atol=2e-6
    )
    # the first stage accepts below its ratio and not above
    for margin, passes in ((-1e-4, True), (1e-4, False)):
        decision = decide(test, posterior, (jnp.float32(first + margin), ALWAYS), 0.3)
        assert bool(decision.is_accepted) is passes
        assert int(decision.num_examples) == (8 if passes else 0)


def test_only_proposals_that_pass_the_first_stage_look_at_the_data():
    looked = []

    def log_likelihood(position, example):
        jax.debug.callback(lambda value: looked.append(float(value)), example)
        return -0.5 * jnp.sum((position - example) ** 2)

    posterior = amagold.Posterior(
        log_likelihood, lambda position: -0.5 * jnp.sum(position**2), np.arange(3, dtype=np.float32)
    )
    plain = amagold.Posterior(
        lambda position, example: -0.5 * jnp.sum((position - example) ** 2),
        posterior.log_prior,
        posterior.data,
    )
    test = acceptance.delayed(2, np.zeros(1, np.float32)).bind(plain)
    memory = test.remember(plain, np.ones(1, np.float32))
    run = jax.jit(
        lambda draws: (
            test.decide(posterior, draws, memory, 2.0 * jnp.ones(1), jnp.float32(0.0)).is_accepted
        )
    )
    for first, expected in ((NEVER, []), (ALWAYS, [0.0, 1.0, 2.0])):
        looked.clear()
        accepted = run((first, ALWAYS))
        jax.effects_barrier()
        assert bool(accepted) is bool(expected)
        assert sorted(looked) == expected


def test_the_reported_rate_is_that_of_acceptance():
    sampler = amagold.amagold(
        target(),
        step_size=0.3,
        num_steps=3,
        gradient=gradients.control_variate(2, 2, CENTER),
        acceptance=acceptance.delayed(),
    )
    _, _, info = move(sampler, exact_draws(200_000)[:20_000], 1, seed=1)
    accepted, rate = (
        np.asarray(found, np.float64) for found in (info.is_accepted, info.acceptance_rate)
    )
    assert worst(accepted - rate) < 1.0
    assert 0.2 < accepted.mean() < 0.9
    # the first stage alone accepts more often
    assert worst(np.asarray(info.num_energy_examples) / 8.0 - rate) > PLANTED


def test_large_sums_do_not_round():
    generator = np.random.default_rng(0)
    table = generator.normal(1.0, 1.0, (300_000, 2)).astype(np.float32)
    posterior = amagold.models.logistic(
        table, generator.random(300_000) < 0.7, prior_scale=1.0, intercept=False
    )
    here, there = np.array([0.30, 0.28], np.float32), np.array([0.301, 0.279], np.float32)
    test = acceptance.delayed(1, here).bind(posterior)
    slope = float(jnp.dot(test.reference.gradient, jnp.asarray(there) - here))
    signs, wide = np.asarray(posterior.data.sign, np.float64), table.astype(np.float64)
    sums = [
        -np.logaddexp(0.0, -signs * (wide @ at.astype(np.float64))).sum() for at in (here, there)
    ]
    found = decide(test, posterior, (ALWAYS, ALWAYS), 0.0, here, there)
    np.testing.assert_allclose(float(found.log_ratio), sums[1] - sums[0] + slope, atol=1e-3)


def test_the_energy_is_that_of_the_test_over_all_data():
    posterior = target()
    test, full = acceptance.delayed(2, CENTER).bind(posterior), acceptance.full()
    np.testing.assert_allclose(
        test.energy(test.remember(posterior, HERE)),
        full.energy(full.remember(posterior, HERE)),
        rtol=1e-6,
    )


def test_the_gradients_reference_is_shared():
    sampler = amagold.amagold(
        target(),
        step_size=0.1,
        gradient=gradients.control_variate(2, 2, CENTER),
        acceptance=acceptance.delayed(),
    )
    assert sampler.acceptance.reference is sampler.gradient.reference
    own = amagold.amagold(
        target(),
        step_size=0.1,
        gradient=gradients.control_variate(2, 1, CENTER),
        acceptance=acceptance.delayed(2, HERE),
    )
    np.testing.assert_array_equal(own.acceptance.reference.position, HERE)
    assert float(jnp.abs(energy_gradient(target(), HERE)).max()) > 0.1, (
        "the reference need not be a mode"
    )


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="order must be 1 or 2, got 0"):
        acceptance.delayed(0)
    with pytest.raises(ValueError, match="needs a target with data"):
        acceptance.delayed().bind(amagold.models.double_well())
