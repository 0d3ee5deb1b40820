"""The gradient of the expansion: it reads nothing, and a test makes it exact."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from exact_target import exact_draws, features, move, target
from false_alarms import PLANTED, worst
from following_gradient import FollowingGradient

import amagold
from amagold import acceptance, gradients
from amagold.gradients._full_gradient import energy_gradient
from amagold.mode._reference import reference_at
from amagold.trajectory import Rotation
from amagold.trajectory._mass_matrix import as_mass

CENTER = np.array([0.1, 0.5], np.float32)  # near the mode, and not it
FEW = 50_000  # exact draws to move


def turning(gradient):
    """Nearly a quarter turn about the center."""
    mass = as_mass(np.diag(reference_at(target(), CENTER, 2).hessian) + 1.0)
    return amagold.amortized(target(), Rotation(1.2, mass, jnp.asarray(CENTER)), 1, gradient)


def moved(sampler):
    draws = exact_draws(200_000)[:FEW]
    _, states, info = move(sampler, draws, 4, seed=1)
    assert 0.1 < float(info.acceptance_rate.mean()) < 0.999
    return worst(np.asarray(features(states.position) - features(jnp.asarray(draws))))


def test_it_is_the_gradient_of_the_second_order_polynomial():
    posterior, estimator = target(), gradients.expansion(CENTER).bind(target())

    def energy(at):
        return -posterior.log_likelihoods(at, posterior.data).sum()

    def polynomial(at):
        center, away = jnp.asarray(CENTER), at - CENTER
        linear = jnp.dot(jax.grad(energy)(center), away)
        return linear + 0.5 * away @ jax.hessian(energy)(center) @ away - posterior.log_prior(at)

    for position in ([0.1, 0.5], [0.6, -0.3], [-1.5, 1.5]):
        found = estimator.estimate(posterior, jnp.array(position), (), ())
        wanted = jax.grad(polynomial)(jnp.array(position))
        np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        estimator.estimate(posterior, jnp.asarray(CENTER), (), ()),
        energy_gradient(posterior, jnp.asarray(CENTER)),
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_it_looks_at_no_example():
    run = amagold.sample(
        turning(gradients.expansion(CENTER)), 20, 0, 2, init=CENTER, progress=False
    )
    assert run.sample_stats["num_gradient_examples"].max() == 0
    assert run.sample_stats["num_energy_examples"].min() > 0


def test_exact_draws_stay_exact():
    assert moved(turning(gradients.expansion(CENTER))) < 1.0


def test_without_a_test_it_is_biased_and_says_so():
    free = dataclasses.replace(
        turning(gradients.expansion(CENTER)), acceptance=acceptance.never_reject().bind(target())
    )
    assert free.label == "biased"


@pytest.mark.slow
def test_a_reference_that_moves_is_seen():
    honest = turning(gradients.expansion(CENTER))
    fields = (getattr(honest, field.name) for field in dataclasses.fields(honest))
    assert moved(FollowingGradient(*fields)) > PLANTED


def test_what_cannot_be_is_refused():
    with pytest.raises(ValueError, match="center must be given for a target without `init`"):
        turning(gradients.expansion())
    with pytest.raises(ValueError, match="a target with data"):
        amagold.amagold(
            amagold.models.double_well(), step_size=0.1, gradient=gradients.expansion(np.zeros(2))
        )
