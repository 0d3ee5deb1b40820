"""Bounds are compared with the likelihood before the first draw: what was left out of them is
named.
"""

import jax.numpy as jnp
import numpy as np
import pytest
from regressions import KNOWN, MAKERS, X

import amagold
from amagold import acceptance, gradients
from amagold.acceptance._bounds_agreement import compare
from amagold.target._linear_bounds import LinearBounds

GENERATOR = np.random.default_rng(8)
ROWS = 200
TABLE = GENERATOR.normal(size=(ROWS, 2)).astype(np.float32)
SIGNS = np.where(GENERATOR.random(ROWS) < 0.5, 1.0, -1.0).astype(np.float32)
WEIGHTS = np.where(np.arange(ROWS) % 7 == 3, 1.1, 1.0).astype(np.float32)
OFFSETS = (100.0 * GENERATOR.normal(size=ROWS)).astype(np.float32)
NUMBERS = (OFFSETS + GENERATOR.standard_t(4, ROWS)).astype(np.float32)
CENTER = np.array([0.2, -0.1], np.float32)
LOGISTIC = (1.0, 0.25, 0.09623)


def linear(position, example):
    return jnp.dot(example[0], position)


def sigmoid(z, example):
    return -jnp.logaddexp(0.0, -example[1] * z)


def log_prior(position):
    return -0.5 * jnp.sum(position**2)


def weighted(position, example):
    # a constant of the example's own does not matter
    return example[2] * sigmoid(linear(position, example), example) + 3.0 * example[1]


def posterior(log_likelihood, bounds, data=(TABLE, SIGNS, WEIGHTS)):
    return amagold.Posterior(
        log_likelihood, log_prior, data, init=np.zeros(2, np.float32), bounds=bounds
    )


def weighted_outcome(z, example):
    return example[2] * sigmoid(z, example)


RIGHT = LinearBounds(linear, weighted_outcome, LOGISTIC, scale=lambda z, example: example[2])
WITHOUT_WEIGHTS = LinearBounds(linear, sigmoid, LOGISTIC)
BENT = LinearBounds(
    lambda position, example: linear(position, example) * (1.0 + 0.3 * position[0]),
    weighted_outcome,
    LOGISTIC,
)
TESTS = {
    "tuna": acceptance.tuna(center=CENTER),
    "firefly": acceptance.firefly(center=CENTER),
    "austerity": acceptance.austerity(center=CENTER),
    "barker": acceptance.barker(center=CENTER),
    "confidence": acceptance.confidence(center=CENTER),
    "confidence, order 0": acceptance.confidence(order=0),
}


@pytest.mark.parametrize("test", TESTS)
def test_what_is_left_out_of_the_bounds_is_seen(test):
    with pytest.raises(
        ValueError,
        match=r"bounds must describe the target's log_likelihood, but for example \d+ "
        r"bounds.outcome",
    ) as found:
        amagold.amagold(posterior(weighted, WITHOUT_WEIGHTS), step_size=0.1, acceptance=TESTS[test])
    example = int(str(found.value).split("for example ")[1].split()[0])
    assert WEIGHTS[example] != 1.0
    assert amagold.amagold(
        posterior(weighted, RIGHT), step_size=0.1, acceptance=TESTS[test]
    ).acceptance.label


def test_a_predictor_that_bends_is_seen():
    with pytest.raises(
        ValueError,
        match=r"bounds must have a predictor that is linear .* that of example \d+ bends",
    ):
        amagold.amagold(
            posterior(weighted, BENT), step_size=0.1, acceptance=acceptance.tuna(center=CENTER)
        )


def test_bounds_given_to_the_test_are_compared_too():
    with pytest.raises(ValueError, match="bounds must describe"):
        acceptance.tuna(center=CENTER, bounds=WITHOUT_WEIGHTS).bind(posterior(weighted, RIGHT))


@pytest.mark.few(2)
@pytest.mark.parametrize("name", KNOWN)
def test_the_models_agree_with_their_bounds(name):
    """In all units, and for tables that are far from centred."""
    for scale, shift in ((1.0, 0.0), (1e-3, 0.0), (1e3, 0.0), (1.0, 1e3)):
        target = MAKERS[name]((scale * X + shift).astype(np.float32))
        compare(target, target.bounds, target.init)
        start = np.full(target.init.shape, 0.1 / max(scale, shift, 1.0), np.float32)
        compare(target, target.bounds, start)
        # and the comparison sees it there where they do not
        known = target.bounds.outcome
        wrong = target.bounds._replace(outcome=lambda z, row, known=known: 0.9 * known(z, row))
        with pytest.raises(ValueError, match="bounds must describe"):
            compare(target, wrong, start)


# Student-t about an offset of each example, in the predictor: linear but for a constant
def shifted(position, example):
    return linear(position, example) + example[2]


def student(z, example):
    return -2.5 * jnp.log1p((example[1] - z) ** 2 / 4.0)


def with_offsets():
    # K_1 .. K_3 of Student's t with four degrees of freedom
    bounds = LinearBounds(shifted, student, (1.25, 1.25, 0.9107))
    return posterior(
        lambda at, example: student(shifted(at, example), example),
        bounds,
        (TABLE, NUMBERS, OFFSETS),
    )


def without_offsets():
    bounds = LinearBounds(linear, student, (1.25, 1.25, 0.9107))
    return posterior(
        lambda at, example: student(linear(at, example), example),
        bounds,
        (TABLE, (NUMBERS - OFFSETS).astype(np.float32)),
    )


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
@pytest.mark.slow
@pytest.mark.parametrize("test", ["tuna", "firefly"])
def test_an_offset_in_the_predictor_is_no_broken_bound(test):
    """The same posterior with the offset in the predictor and taken out of the data: the same
    draws, to rounding.
    """
    runs = []
    for target in (with_offsets(), without_offsets()):
        sampler = amagold.amagold(
            target, step_size=0.05, num_steps=2, gradient=gradients.full(), acceptance=TESTS[test]
        )
        runs.append(
            amagold.sample(sampler, 30, 0, 2, init=CENTER, progress=False)
            .posterior.to_array()
            .to_numpy()
        )
    assert np.std(runs[1]) > 0.01
    np.testing.assert_allclose(runs[0], runs[1], atol=5e-3)
