"""Firefly: parabolas that stay below, precise gaps, and a ratio that is right on average. Draws:
`test_exactness_by_quadrature`.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from broken_bounds import fewer_arrivals, smaller_bounds
from false_alarms import PLANTED, worst

import amagold
from amagold import acceptance, models
from amagold.acceptance._firefly_bounds import curvatures, gaps_of
from amagold.target._linear_bounds import LinearBounds

GENERATOR = np.random.default_rng(3)
X = GENERATOR.normal(size=(40, 2)).astype(np.float32)
OUTCOMES = (GENERATOR.random(40) < 1.0 / (1.0 + np.exp(-(X @ [1.0, -2.0])))).astype(int)
CENTER = np.array([0.6, -1.1], np.float32)
HERE, THERE = np.array([0.8, -1.5], np.float32), np.array([1.0, -1.2], np.float32)


def target():
    return models.logistic(X, OUTCOMES, prior_scale=3.0, intercept=False)


@jax.jit
def decisions(test, posterior, here, there):
    """Independent tests on one and the same step."""
    memory = test.remember(posterior, here)
    keys = jax.random.split(jax.random.key(5), 20_000)
    return jax.vmap(
        lambda key: test.decide(posterior, test.draw(key), memory, there, jnp.float32(0.3))
    )(keys)


def firefly(**settings):
    return acceptance.firefly(CENTER, block_size=4, **{"most": 1e4, **settings}).bind(target())


def ratios(test):
    return np.exp(np.asarray(decisions(test, target(), HERE, THERE).log_ratio, np.float64))


def exact_ratio():
    def log_density(position):
        signs, position = np.where(OUTCOMES > 0, 1.0, -1.0), position.astype(np.float64)
        return (
            -np.sum(position**2) / 18.0
            - np.logaddexp(0.0, -signs * (X.astype(np.float64) @ position)).sum()
        )

    return np.exp(0.3 + log_density(THERE) - log_density(HERE))


def test_the_ratio_is_right_on_average():
    """E[prod (gap*/gap)^s] over Poisson counts s is exp(sum of gap* - gap), which is what the
    parabolas leave out.
    """
    test = firefly()
    found = decisions(test, target(), HERE, THERE)
    assert int(found.broken_bound.max()) == -1
    assert int(found.num_examples.max()) > 4, "some tests take more than one block"
    assert worst(ratios(test), exact_ratio()) < 1.0
    assert worst(ratios(fewer_arrivals(test, 2.0)), exact_ratio()) > PLANTED


def test_above_the_most_all_data_are_looked_at_whichever_end_is_far():
    test, near, far = firefly(most=1.0), CENTER + 0.01, CENTER + 3.0
    for here, there in ((near, far), (far, near)):
        assert int(decisions(test, target(), here, there).num_examples.min()) == 40
    assert int(decisions(test, target(), near, near).num_examples.max()) < 40


def test_a_broken_bound_is_reported():
    test = firefly()
    broken = smaller_bounds(test, 16.0)
    found = np.unique(decisions(broken, target(), HERE, THERE).broken_bound)
    assert set(found) <= set(range(-1, 40))
    assert len(found) > 1


@pytest.mark.parametrize("size", [1e-3, 0.05, 3.0])
def test_gaps_are_precise_however_small(size):
    posterior = target()
    center, here, there = (
        scale * GENERATOR.normal(size=2).astype(np.float32) for scale in (1.0, size, size)
    )
    found = np.asarray(
        gaps_of(posterior.bounds, center, center + here, center + there, posterior.data).value
    )
    z = X.astype(np.float64) @ center.astype(np.float64)
    signs = np.where(OUTCOMES > 0, 1.0, -1.0)
    kappa = np.tanh(0.5 * z) / (2.0 * z)
    for column, away in enumerate((here, there)):
        # in float32 the positions themselves are rounded, so the steps are taken as they are there
        step = X.astype(np.float64) @ ((center + away) - center).astype(np.float64)
        slope = signs / (1.0 + np.exp(signs * z))
        below = -np.logaddexp(0.0, -signs * z) + slope * step - 0.5 * kappa * step**2
        wanted = -np.logaddexp(0.0, -signs * (z + step)) - below
        np.testing.assert_allclose(
            found[:, column], wanted, rtol=1e-4, atol=3e-6 * (0.5 * kappa * step**2).max() + 1e-14
        )


def spread_out(width, num=60, seed=0):
    """Pairs of a predictor at the reference and away from it, near and far."""
    generator = np.random.default_rng(seed)
    shape = (num,) if width is None else (num, width)
    return (scale * generator.standard_t(2.0, shape).astype(np.float32) for scale in (1.5, 3.0))


@pytest.mark.parametrize(
    ("posterior", "width"),
    [
        (models.logistic(X, OUTCOMES, prior_scale=1.0), None),
        (models.probit(X, OUTCOMES, prior_scale=1.0), None),
        (
            models.robust(
                X, X[:, 0] - X[:, 1], prior_scale=1.0, noise_scale=0.5, degrees_of_freedom=3.0
            ),
            None,
        ),
        (models.softmax(X, np.arange(40) % 3, prior_scale=1.0), 3),
    ],
    ids=["logistic", "probit", "robust", "softmax"],
)
def test_every_model_stays_between_its_parabolas(posterior, width):
    bounds = posterior.bounds

    def one(center, away, example):
        value, slope = jax.value_and_grad(bounds.outcome)(center, example)
        kappa, room = curvatures(bounds, center, example)
        parabola = 0.5 * jnp.sum((away - center) ** 2)
        return bounds.outcome(away, example) - value - jnp.sum(
            slope * (away - center)
        ) + kappa * parabola, room * parabola

    over = jax.vmap(jax.vmap(one, in_axes=(0, 0, None)), in_axes=(None, None, 0))
    gap, most = (
        np.asarray(found)
        for found in jax.jit(over)(*map(jnp.asarray, spread_out(width)), posterior.data)
    )
    rounding = 1e-5 * (1.0 + most)
    assert np.all(gap >= -rounding)
    assert np.all(gap <= most + rounding)


def test_what_cannot_be_is_refused():
    def unknown(position, example):
        return jnp.dot(example, position)

    with pytest.raises(ValueError, match=r"bounds must give a parabola below .* are unknown"):
        acceptance.firefly(CENTER).bind(
            amagold.Posterior(unknown, lambda position: -jnp.sum(position**2), X)
        )
    with pytest.raises(ValueError, match=r"bounds must give a parabola below .* grow without end"):
        acceptance.firefly(CENTER).bind(
            models.poisson(X, OUTCOMES, prior_scale=1.0, intercept=False)
        )
    with pytest.raises(ValueError, match="needs a target with data"):
        acceptance.firefly().bind(models.double_well())
    with pytest.raises(ValueError, match="block_size must be a whole number of at least 1, got 0"):
        acceptance.firefly(block_size=0)
    with pytest.raises(ValueError, match="most must be a finite number at least 0"):
        acceptance.firefly(most=-1.0)


def test_bounds_of_ones_own_may_be_given():
    posterior = target()
    # without the two curvatures, those of the second derivative: valid, and wider
    plain = LinearBounds(
        posterior.bounds.predictor, posterior.bounds.outcome, posterior.bounds.derivatives
    )
    own, wide = firefly(), firefly(bounds=plain)
    assert float(wide.table.total) > 1.5 * float(own.table.total)
    assert worst(ratios(wide), exact_ratio()) < 1.0
