"""Mixed models as posteriors: the density is that of scipy, names and units are the user's, and
wrong input is told in a sentence.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from amagold import models, priors

ROWS, LEVELS = 30, 5


def columns():
    generator = np.random.default_rng(3)
    return generator.normal(size=(ROWS, 2)), np.arange(ROWS) % LEVELS, generator


def test_the_density_is_that_of_the_model():
    """Prior and likelihood at a random place against scipy, correlated effects included."""
    x, group, generator = columns()
    y = generator.random(ROWS) < 0.5
    shape = np.stack([np.ones(ROWS), x[:, 0]], axis=1)
    given = {"1 + x|g": models.Group(group, shape)}
    target = models.mixed(x, y, given, prior_scale=1.3, scale_prior=0.8, standardize=False)
    place = {
        name: jnp.asarray(0.3 * generator.normal(size=np.shape(values)), jnp.float32)
        for name, values in target.init.items()
    }
    shown = target.transform(jax.tree.map(np.asarray, place))
    widths = np.sqrt(np.mean(shape**2, axis=0))
    np.testing.assert_allclose(
        shown["1 + x|g_sigma"] * widths, np.exp(place["1 + x|g_sigma"]), rtol=1e-5
    )
    z = shown["theta"][0] + x @ shown["theta"][1:]
    z = z + np.sum(shape * shown["1 + x|g"][group], axis=1)
    expected = np.sum(np.log(1.0 / (1.0 + np.exp(np.where(y, -z, z)))))
    found = float(jnp.sum(target.log_likelihoods(place, target.data)))
    np.testing.assert_allclose(found, expected, rtol=1e-5)

    def density(place):
        shown = target.transform(jax.tree.map(np.asarray, place))
        scales, correlation = shown["1 + x|g_sigma"], shown["1 + x|g_correlation"]
        covariance = scales[:, None] * correlation * scales
        total = stats.norm(0, 1.3).logpdf(shown["theta"]).sum()
        total += stats.multivariate_normal(np.zeros(2), covariance).logpdf(shown["1 + x|g"]).sum()
        # half-t of the user's scale, the Jacobians of log and tanh, and LKJ(2): 1 - r^2
        total += (stats.t(3, 0, 0.8).logpdf(scales) + np.log(scales)).sum()
        return total + 2.0 * np.log1p(-(correlation[0, 1] ** 2))

    other = {name: values + 0.2 for name, values in place.items()}
    apart = float(target.log_prior(other)) - float(target.log_prior(place))
    np.testing.assert_allclose(apart, density(other) - density(place), rtol=1e-4)


@pytest.mark.parametrize("family", ["logistic", "poisson", "linear", "probit"])
def test_reported_positions_come_back(family):
    x, group, generator = columns()
    y = generator.integers(0, 2, ROWS) + (5.0 if family == "linear" else 0.0)
    groups = {"1|g": group, "x|h": models.Group(group % 2, 100.0 * x[:, :1])}
    target = models.mixed(1e3 * x, y, groups, family)
    place = {
        name: np.asarray(0.3 * generator.normal(size=np.shape(values)), np.float32)
        for name, values in target.init.items()
    }
    back = target.transform.inverse(target.transform(place))
    for name, values in place.items():
        np.testing.assert_allclose(back[name], values, atol=1e-4)
    assert any("half-Student-t(3)" in sentence for sentence in target.notes)


@pytest.mark.parametrize("family", ["logistic", "linear"])
def test_the_origin_of_a_column_does_not_matter(family):
    """Beside a column of ones: the same is sampled, and what is reported is on the user's scale."""
    x, group, generator = columns()
    y = generator.integers(0, 2, ROWS) + 0.0
    place, shown, targets = None, [], []
    for zero in (0.0, 2000.0):
        away = np.stack([zero + x[:, 0], np.ones(ROWS), 3.0 * x[:, 1]], axis=1)
        target = models.mixed(x, y, {"g": models.Group(group, away)}, family)
        place = place or {
            name: np.asarray(0.3 * generator.normal(size=np.shape(values)), np.float32)
            for name, values in target.init.items()
        }
        shown.append(target.transform(place))
        targets.append(target)
        back = target.transform.inverse(shown[-1])
        for name, values in place.items():
            np.testing.assert_allclose(back[name], values, atol=1e-3, err_msg=name)
    one, other = targets
    np.testing.assert_allclose(one.data.columns[0], other.data.columns[0], atol=2e-4)
    np.testing.assert_allclose(one.data.columns[0].mean(axis=0), [0.0, 1.0, 0.0], atol=1e-4)
    np.testing.assert_allclose(one.data.columns[0].std(axis=0), [1.0, 0.0, 1.0], atol=1e-5)
    assert float(one.log_prior(place)) == float(other.log_prior(place))
    assert one.notes == other.notes
    assert any("at the means of the columns" in note for note in one.notes)
    # z is the same, and so is the covariance at any x
    for moved, wanted in zip(*map(across, shown, [0.0, 2000.0]), strict=True):
        np.testing.assert_allclose(moved, wanted, rtol=1e-3, atol=1e-4)
    assert shown[1]["g_correlation"][0, 1] < -0.99


def across(shown, zero):
    """Effects, and their covariance, at a few places of the columns."""
    places = np.array([[-1.0, 1.0, 0.5], [0.0, 1.0, 0.0], [2.0, 1.0, -3.0]])
    places[:, 0] += zero
    scales = shown["g_sigma"]
    covariance = scales[:, None] * shown["g_correlation"] * scales
    return shown["g"] @ places.T, places @ covariance @ places.T


def test_a_prior_of_a_scale_speaks_of_the_columns_as_they_are():
    x, group, generator = columns()
    y, away = generator.random(ROWS) < 0.5, np.stack([np.ones(ROWS), 5.0 + x[:, 0]], axis=1)

    def centers(center=None, **options):
        target = models.mixed(x, y, {"g": models.Group(group, away, center=center)}, **options)
        return np.asarray(target.transform.units[0].centers)

    assert centers()[1] > 4.0
    assert not centers(scale_prior={"g": 1.0}).any()
    assert not centers(standardize=False).any()
    assert not centers(center=False).any()
    assert centers(center=True, scale_prior=1.0)[1] > 4.0
    with pytest.raises(ValueError, match=r"center must be True, False or None"):
        centers(center="yes")
    with pytest.raises(ValueError, match="constant beside a column of ones"):
        models.mixed(x, y, {"g": models.Group(group, np.ones((ROWS, 2)) * [1.0, 7.0])})


def test_rows_of_no_weight_are_left_out():
    x, group, generator = columns()
    y, weights = generator.random(ROWS) < 0.5, np.arange(ROWS) % 3 * 1.0
    target = models.mixed(x, y, {"1|g": group}, weights=weights)
    assert target.num_examples == (weights > 0).sum()
    np.testing.assert_array_equal(target.data.codes[0], group[weights > 0])


def test_the_shape_of_counts_is_that_of_scipy():
    z, y = np.linspace(-2.0, 3.0, 40), np.arange(40) % 9
    outcome = models._fixed_dispersion.NegativeBinomialOfShape(1.7)
    example = models._poisson.CountExample(None, jnp.asarray(y, jnp.float32))
    found = jax.vmap(lambda z, y: outcome(z, example._replace(events=y)))(
        jnp.asarray(z, jnp.float32), example.events
    )
    wanted = stats.nbinom(1.7, 1.7 / (1.7 + np.exp(z))).logpmf(y)
    apart = np.asarray(found) - wanted
    # equal but for a constant of each outcome
    for count in range(9):
        np.testing.assert_allclose(np.ptp(apart[y == count]), 0.0, atol=1e-4)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"family": "beta"}, "family must be one of"),
        ({"groups": {"1|g": np.zeros(3)}}, "one level for each of the 30 rows"),
        ({"groups": {"1|g": -np.ones(ROWS)}}, "whole numbers from 0"),
        ({"groups": np.zeros(ROWS)}, "groups must map a name .*, got ndarray"),
        ({"groups": {}}, "groups must map a name .*, got none"),
        ({"groups": {"theta": np.zeros(ROWS)}}, "must not be called"),
        ({"trials": np.ones(ROWS), "family": "poisson"}, "trials must not be given"),
        ({"family": "negative_binomial"}, "dispersion must be given"),
        ({"scale_prior": -1.0}, "scale_prior must be a number above zero"),
        ({"scale_prior": {"1|h": 1.0}}, "scale_prior must be of groups"),
        ({"scale_prior": priors.laplace()}, "scale_prior must be half of"),
        ({"X": None, "intercept": False}, "X must be given"),
    ],
)
def test_wrong_input_is_told_in_a_sentence(changes, sentence):
    x, group, _ = columns()
    given = {"X": x, "y": np.arange(ROWS) % 2, "groups": {"1|g": group}, **changes}
    with pytest.raises(ValueError, match=sentence):
        models.mixed(**given)
