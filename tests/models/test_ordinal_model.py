"""Ordered classes: probabilities by scipy, cutpoints there and back."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from regressions import CLASSES, MOVED, X
from scipy import special

from amagold import models


@pytest.mark.parametrize("standardize", [False, True])
def test_probabilities_are_differences_of_sigmoids(standardize):
    target = models.ordinal(MOVED, CLASSES, standardize=standardize or None)
    reported = {"coefficients": np.array([0.02, 3.0]), "cutpoints": np.array([17.0, 18.5, 20.0])}
    sampled = target.transform.inverse(reported)
    again = target.transform(sampled)
    for name, values in reported.items():
        np.testing.assert_allclose(again[name], values, rtol=1e-9)
    position = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float32), sampled)
    away = reported["cutpoints"] - (MOVED.astype(float) @ reported["coefficients"])[:, None]
    up_to = np.column_stack([np.zeros(60), special.expit(away), np.ones(60)])
    wanted = np.log(np.diff(up_to, axis=1))[np.arange(60), CLASSES]
    found = target.log_likelihoods(position, target.data)
    np.testing.assert_allclose(found, wanted, rtol=2e-3, atol=2e-4)


def test_what_classes_to_expect():
    outcome = models.ordinal(X, CLASSES).log_likelihood.outcome
    z = jnp.array([0.3, -0.2, 0.1])
    share = outcome.mean(z)
    assert float(share.sum()) == pytest.approx(1.0, rel=1e-5)
    drawn = outcome.draw(jax.random.key(0), jnp.broadcast_to(z, (20_000, 3)))
    counts = np.bincount(drawn, minlength=4) / 20_000
    assert np.abs(counts - share).max() < 5.0 * 0.5 / 20_000**0.5
    assert np.abs(counts - outcome.mean(z + 0.2)).max() > 5.0 * 0.5 / 20_000**0.5


def test_logs_of_gaps_are_normal():
    """In the coordinates that are sampled, with the Jacobian of automatic differentiation."""
    target = models.ordinal(X, CLASSES, prior_scale=1.0)
    coefficients = jnp.zeros(3)

    def log_gaps(t):
        reported = target.transform({"coefficients": coefficients, "gaps": t})
        return jnp.log(jnp.diff(reported["cutpoints"]))

    shares = [np.mean(label >= CLASSES) for label in range(3)]
    centers = np.log(np.diff(special.logit(shares)))
    found, wanted, stretches = [], [], []
    for t in (np.array([0.3, -2.0]), np.array([4.0, 1.0]), np.array([-9.0, 12.0])):
        t = jnp.asarray(t, jnp.float32)
        stretch = np.linalg.slogdet(jax.jit(jax.jacobian(log_gaps))(t))[1]
        found.append(float(target.log_prior({"coefficients": coefficients, "gaps": t})))
        wanted.append(stretch - 0.5 * np.sum((np.asarray(jax.jit(log_gaps)(t)) - centers) ** 2))
        stretches.append(stretch)
    np.testing.assert_allclose(np.diff(found), np.diff(wanted), rtol=1e-3)
    assert np.abs(np.diff(stretches)).max() > 0.5, "one left out would be seen"


def test_ordered_classes_that_cannot_be_used():
    with pytest.raises(ValueError, match="at least three ordered classes"):
        models.ordinal(X, CLASSES > 1)
    target = models.ordinal(X, CLASSES)
    with pytest.raises(ValueError, match="cutpoints must rise"):
        target.transform.inverse({"coefficients": np.zeros(2), "cutpoints": np.zeros(3)})
