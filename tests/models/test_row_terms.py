"""Weights, offsets and trials: the posterior of a table whose rows are written out."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from regressions import CLASSES, COUNTS, NUMBERS, SIGNS, X
from scipy import stats

from amagold import models
from amagold.mode._derivatives import derivatives_at
from amagold.models._recipes import build_again, recipe_of

TIMES = np.random.default_rng(5).integers(0, 4, 60)  # some rows are left out
OFFSET = np.random.default_rng(6).normal(size=60)
OUTCOMES = {
    "logistic": SIGNS,
    "probit": SIGNS,
    "softmax": CLASSES,
    "poisson": COUNTS,
    "linear": NUMBERS,
    "robust": NUMBERS,
}


def log_densities(target, scales=(0.0, 0.5, 1.0)):
    """Of positions on the user's scale."""
    generator, found = np.random.default_rng(0), []
    for scale in scales:
        position = jax.tree.map(
            lambda leaf, scale=scale: scale * generator.normal(size=np.shape(leaf)), target.init
        )
        if target.transform is not None:
            position = target.transform.inverse(position)
        at = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), position)
        likelihood = np.asarray(target.log_likelihoods(at, target.data), np.float64).sum()
        found.append([likelihood, float(target.log_prior(at))])
    return np.array(found)[1:] - np.array(found)[0]


@pytest.mark.few(1)
@pytest.mark.parametrize("name", OUTCOMES)
def test_a_weight_is_that_many_rows(name):
    build, y = getattr(models, name), OUTCOMES[name]
    moved = X + 5.0  # far enough from zero to be standardised
    weighted = build(moved, y, weights=TIMES)
    written = build(np.repeat(moved, TIMES, axis=0), np.repeat(y, TIMES, axis=0))
    # sums stand for the rows of a linear model
    assert weighted.num_examples == (4 if name == "linear" else np.count_nonzero(TIMES))
    np.testing.assert_allclose(
        log_densities(weighted), log_densities(written), rtol=1e-4, atol=1e-3
    )
    unweighted = log_densities(build(moved, y))
    assert np.abs(log_densities(weighted) - unweighted).max() > 1.0


def test_derivatives_and_bounds_of_weighted_rows():
    weighted = models.logistic(X, SIGNS, weights=TIMES)
    written = models.logistic(np.repeat(X, TIMES, axis=0), np.repeat(SIGNS, TIMES))
    at = jnp.full(3, 0.3)
    ours, theirs = (derivatives_at(target, at, 2) for target in (weighted, written))
    np.testing.assert_allclose(ours.gradient, theirs.gradient, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(ours.hessian, theirs.hessian, rtol=1e-4, atol=1e-4)
    scales = jax.vmap(lambda row: weighted.bounds.scale(0.0, row))(weighted.data)
    np.testing.assert_array_equal(scales, TIMES[TIMES > 0])


def test_trials_are_as_many_rows():
    trials = np.arange(60) % 5 + 1
    successes = np.random.default_rng(1).binomial(trials, 0.3)
    each = np.concatenate([np.arange(n) < k for n, k in zip(trials, successes, strict=True)])
    for build in (models.logistic, models.probit):
        ours = build(X, successes, trials=trials)
        theirs = build(np.repeat(X, trials, axis=0), each)
        np.testing.assert_allclose(log_densities(ours), log_densities(theirs), rtol=1e-4, atol=1e-3)


def test_many_trials_keep_their_small_end():
    """Of a million trials, to a thousandth near the best z, and the slope far from it."""
    target = models.logistic(np.zeros((3, 0)), [300_000, 0, 999_999], trials=[1_000_000] * 3)
    for row, k in enumerate([300_000, 0, 999_999]):
        example = jax.tree.map(lambda leaf, row=row: leaf[row], target.data)
        best = np.log(max(k, 0.5)) - np.log(1e6 - k)
        z = np.float32(best) + np.float32([0.0, 0.003, -0.002, 3.0, -6.0])
        wanted = stats.binom.logpmf(k, 1e6, 1.0 / (1.0 + np.exp(-z.astype(np.float64))))
        found = jax.vmap(lambda at, row=example: target.log_likelihood.outcome(at, row))(z)
        differences = np.asarray(found, np.float64)[1:] - float(found[0])
        np.testing.assert_allclose(differences, wanted[1:] - wanted[0], rtol=1e-4, atol=1e-3)
        slopes = jax.vmap(jax.grad(target.log_likelihood.outcome), (0, None))(z, example)
        np.testing.assert_allclose(slopes, k - 1e6 / (1.0 + np.exp(-z)), rtol=1e-4, atol=0.5)


@pytest.mark.parametrize("name", ["logistic", "poisson", "linear"])
def test_an_offset_is_added_to_the_predictor(name):
    """As a column whose coefficient is one."""
    build, y = getattr(models, name), OUTCOMES[name]
    ours = build(X, y, offset=OFFSET, prior_scale=1.0, standardize=False)
    theirs = build(np.column_stack([X, OFFSET]), y, prior_scale=1.0, standardize=False)
    found = []
    for scale in (0.0, 0.5):  # differences, because constants may be left out
        at = scale * np.float32([0.2, -0.4, 0.7])
        with_one = np.append(at, np.float32(1.0))
        if name == "linear":
            at = {"coefficients": at, "log_noise_scale": np.float32(scale)}
            with_one = {"coefficients": with_one, "log_noise_scale": np.float32(scale)}
        ends = ours.log_likelihoods(at, ours.data), theirs.log_likelihoods(with_one, theirs.data)
        found.append([float(jnp.sum(each)) for each in ends])
    (first, second), (third, fourth) = found
    assert third - first == pytest.approx(fourth - second, rel=1e-4)


def test_the_default_prior_knows_the_offset():
    """The intercept's prior is where the outcomes are, whatever units the exposure has."""
    seconds = models.poisson(X, COUNTS, exposure=np.full(60, 3600.0))
    hours = models.poisson(X, COUNTS)
    moved = float(hours.log_prior.center[0] - seconds.log_prior.center[0])
    assert moved == pytest.approx(np.log(3600.0), rel=1e-5)
    odds = float(models.logistic(X, SIGNS, offset=np.full(60, 2.0)).log_prior.center[0])
    plain = float(models.logistic(X, SIGNS).log_prior.center[0])
    assert odds == pytest.approx(plain - 2.0, rel=1e-5)


def test_weighted_models_are_built_again():
    target = models.poisson(X, COUNTS, weights=TIMES, offset=OFFSET)
    again = build_again(*recipe_of(target))
    np.testing.assert_array_equal(log_densities(again), log_densities(target))
    assert again.bounds == target.bounds


@pytest.mark.parametrize(
    ("model", "options", "words"),
    [
        (models.logistic, {"weights": -TIMES}, "weights must not be negative"),
        (models.logistic, {"weights": 0 * TIMES}, "weights must be above zero for some rows"),
        (models.logistic, {"weights": TIMES[:5]}, "one number for each of the 60 rows"),
        (models.logistic, {"weights": np.full(60, np.inf)}, "weights must be finite"),
        (models.logistic, {"offset": np.full(60, 1e6)}, "offset must lie within 60"),
        (models.poisson, {"offset": np.full(60, np.nan)}, "offset must be finite"),
        (models.poisson, {"exposure": np.zeros(60)}, "exposure must be above zero"),
        (models.poisson, {"exposure": TIMES, "offset": OFFSET}, "exposure must not be given with"),
        (models.probit, {"trials": np.zeros(60)}, "trials must be whole numbers from 1"),
    ],
)
def test_rows_that_cannot_be_used(model, options, words):
    y = COUNTS if model is models.poisson else SIGNS
    with pytest.raises(ValueError, match=words):
        model(X, y, **options)


def test_more_successes_than_trials():
    with pytest.raises(ValueError, match="from 0 to the row's trials"):
        models.logistic(X, np.full(60, 3), trials=np.full(60, 2))
