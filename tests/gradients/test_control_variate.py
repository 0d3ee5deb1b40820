"""Control-variate gradients: unbiased everywhere, quiet near the reference, exact under a test as
long as the reference stays.
"""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from doubles import some_of
from exact_target import exact_draws, features, move, target
from false_alarms import PLANTED, worst

import amagold
from amagold import gradients
from amagold.core import trees
from amagold.gradients import ControlVariate
from amagold.gradients._full_gradient import energy_gradient
from amagold.mode._reference import reference_at

CENTER = np.array([0.1, 0.5], np.float32)  # near the mode, and not it


def sampler_with(gradient, resample_momentum=True, **settings):
    settings = {"step_size": 0.12, "friction": 0.3, "num_steps": 3, **settings}
    return amagold.amagold(
        target(), **settings, gradient=gradient, resample_momentum=resample_momentum
    )


def estimates(estimator, position, num=4000):
    """Independent estimates of the gradient, flattened."""
    bound = estimator.bind(target())
    rows = bound.draw(jax.random.key(3), target(), num)
    return np.asarray(
        jax.lax.map(
            lambda batch: bound.estimate(target(), position, bound.gather(target(), batch), ()),
            rows,
        )
    )


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("position", [(0.1, 0.5), (0.6, -0.3), (-1.5, 1.5)])
def test_it_is_unbiased_everywhere(order, position):
    position = jnp.array(position)
    found = estimates(gradients.control_variate(2, order, center=CENTER), position)
    exact = np.asarray(energy_gradient(target(), position))
    if np.ptp(found, axis=0).max() < 1e-5:  # at the center there is no noise at all
        np.testing.assert_allclose(found[0], exact, rtol=1e-5, atol=1e-5)
    else:
        assert worst(found, exact) < 1.0


def test_the_first_order_is_unbiased_about_a_reference_that_knows_more():
    position = jnp.array((0.6, -0.3))
    estimator = dataclasses.replace(
        gradients.control_variate(2, 1), reference=reference_at(target(), CENTER, 2)
    )
    assert (
        worst(estimates(estimator, position), np.asarray(energy_gradient(target(), position))) < 1.0
    )


def test_each_order_is_quieter_near_the_reference():
    position = jnp.asarray(CENTER) + 0.02
    plain = gradients.minibatch(2)
    rows = plain.draw(jax.random.key(3), target(), 4000)
    loud = jax.lax.map(
        lambda batch: plain.estimate(target(), position, plain.gather(target(), batch), ()), rows
    )
    spreads = [float(np.std(np.asarray(loud), axis=0).max())]
    spreads += [
        float(
            estimates(gradients.control_variate(2, order, center=CENTER), position)
            .std(axis=0)
            .max()
        )
        for order in (1, 2)
    ]
    assert spreads[1] < 0.3 * spreads[0]
    assert spreads[2] < 0.3 * spreads[1]


def test_the_reference_knows_the_sums_over_all_data():
    posterior = target()
    reference = reference_at(posterior, CENTER, 2)

    def energy(position):
        return -posterior.log_likelihoods(position, posterior.data).sum()

    np.testing.assert_allclose(reference.gradient, jax.grad(energy)(jnp.asarray(CENTER)), rtol=1e-5)
    np.testing.assert_allclose(
        reference.hessian, jax.hessian(energy)(jnp.asarray(CENTER)), rtol=1e-5
    )


def test_sums_do_not_round_at_many_examples():
    generator = np.random.default_rng(0)
    predictors = generator.normal(1.0, 1.0, (300_000, 3)).astype(np.float32)
    posterior = amagold.models.logistic(
        predictors, generator.random(300_000) < 0.5, prior_scale=1.0, intercept=False
    )
    reference = reference_at(posterior, np.zeros(3), 1)
    wanted = (
        -(np.asarray(posterior.data.sign, np.float64)[:, None] * predictors.astype(np.float64)).sum(
            axis=0
        )
        / 2.0
    )
    np.testing.assert_allclose(reference.gradient, wanted, rtol=3e-6, atol=3e-2)


def test_without_a_center_the_mode_is_found():
    posterior = dataclasses.replace(target(), init=np.zeros(2, np.float32))
    bound = gradients.control_variate(2).bind(posterior)
    slope = energy_gradient(posterior, bound.reference.position)
    assert float(jnp.abs(slope).max()) < 0.05


@pytest.mark.parametrize("resample_momentum", some_of([True, False], False))
@pytest.mark.parametrize("order", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_exact_draws_stay_exact(order, resample_momentum):
    draws = exact_draws(200_000)[:50_000]
    _, states, info = move(
        sampler_with(gradients.control_variate(2, order, center=CENTER), resample_momentum),
        draws,
        4,
        seed=1,
    )
    assert 0.3 < float(info.acceptance_rate.mean()) < 0.999
    assert worst(np.asarray(features(states.position) - features(jnp.asarray(draws)))) < 1.0


@trees.record(static=("batch_size", "plan", "order"))
class FollowingReference(ControlVariate):
    """Bug: the differences are taken to where the chain is, not to the reference that the sums
    belong to.
    """

    def estimate(self, target, position, rows, noise):
        followed = dataclasses.replace(
            self.reference, position=0.5 * (self.reference.position + position)
        )
        honest = ControlVariate(self.batch_size, self.plan, self.order, None, followed)
        return honest.estimate(target, position, rows, noise)


def test_a_reference_that_moves_is_seen():
    bound = gradients.control_variate(2, 1, center=CENTER).bind(target())
    broken = FollowingReference(bound.batch_size, bound.plan, bound.order, None, bound.reference)
    assert (
        worst(
            estimates(broken, jnp.array([0.6, -0.3])),
            np.asarray(energy_gradient(target(), jnp.array([0.6, -0.3]))),
        )
        > PLANTED
    )


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize("order", [0, 3, "two"])
def test_bad_orders_are_refused(order):
    with pytest.raises(ValueError, match="order must be 1 or 2"):
        gradients.control_variate(2, order)


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="batch_size must be between 1 and the 8 examples, got 9"):
        sampler_with(gradients.control_variate(9, center=CENTER))
    with pytest.raises(ValueError, match="plan must not be 'external'"):
        gradients.control_variate(2, plan="external")
    with pytest.raises(ValueError, match="center must be given for a target without `init`"):
        sampler_with(gradients.control_variate(2))
    with pytest.raises(ValueError, match="a target with data"):
        amagold.amagold(
            amagold.models.double_well(), step_size=0.1, gradient=gradients.control_variate(2)
        )
