"""The network's posterior: its log likelihood by hand, its start, bad input, and that a chain over
its weights learns.
"""

import jax
import numpy as np
import pytest

import amagold
from amagold.models import network
from amagold.models._network import log_likelihood, logits

X = np.random.default_rng(0).normal(size=(12, 3)).astype(np.float32)
y = np.arange(12) % 4


def test_log_likelihood_by_hand():
    target = network(X, y, hidden=(5, 6))
    first, second, last = (jax.tree.map(np.asarray, layer) for layer in target.init)
    hidden = np.maximum(0.0, X @ first["weights"] + first["biases"])
    hidden = np.maximum(0.0, hidden @ second["weights"] + second["biases"])
    scores = hidden @ last["weights"] + last["biases"]
    expected = scores[np.arange(12), y] - np.log(np.exp(scores).sum(axis=1))
    np.testing.assert_allclose(
        target.log_likelihoods(target.init, target.data), expected, rtol=1e-5
    )
    np.testing.assert_allclose(logits(target.init, X), scores, rtol=1e-4, atol=1e-6)
    one = jax.tree.map(lambda leaf: leaf[3], target.data)
    np.testing.assert_allclose(log_likelihood(target.init, one), expected[3], rtol=1e-5)


def test_prior_covers_weights_and_biases():
    target = network(X, y, hidden=(5,), prior_scale=2.0)
    squares = sum(float(np.square(leaf).sum()) for leaf in jax.tree.leaves(target.init))
    np.testing.assert_allclose(target.log_prior(target.init), -0.5 * squares / 4.0, rtol=1e-5)


def test_form_and_start():
    target = network(X, y, hidden=(5, 6), num_classes=7)
    shapes = [layer["weights"].shape for layer in target.init]
    assert shapes == [(3, 5), (5, 6), (6, 7)]
    assert all(
        np.abs(layer["weights"]).max() <= layer["weights"].shape[0] ** -0.5 for layer in target.init
    )
    again, other = (
        network(X, y, hidden=(5, 6), num_classes=7),
        network(X, y, hidden=(5, 6), num_classes=7, seed=1),
    )
    assert np.array_equal(again.init[0]["weights"], target.init[0]["weights"])
    assert not np.array_equal(other.init[0]["weights"], target.init[0]["weights"])


def test_no_hidden_layer_is_a_softmax_regression():
    assert [layer["weights"].shape for layer in network(X, y, hidden=()).init] == [(3, 4)]


def test_a_chain_learns():
    rows = np.random.default_rng(1).normal(size=(200, 3)).astype(np.float32)
    target = network(rows, (rows[:, 0] * rows[:, 1] > 0).astype(int), hidden=(16,))
    sampler = amagold.amagold(target, step_size=0.03, friction=1.0, num_steps=10, batch_size=50)
    state = sampler.init(target.init)
    before = float(sampler.acceptance.energy(state.memory))
    for step in range(100):
        state, _ = sampler.step(jax.random.key(step), state)
    assert float(sampler.acceptance.energy(state.memory)) < before - 20.0


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"X": np.ones((12, 2, 2))},
            r"X must have a row per example .* got shape \(12, 2, 2\); flatten",
        ),
        (
            {"y": y[:5]},
            r"y must have one class for each of the 12 rows of X, got shape \(5,\); give",
        ),
        (
            {"y": y.astype(float)},
            "y must hold classes as whole numbers from 0, got float64 .*; number the classes",
        ),
        (
            {"y": y - 1},
            "y must hold classes as whole numbers from 0, got int64 from -1; number the classes",
        ),
        ({"hidden": (5, 0)}, r"hidden\[1\] must be a whole number of at least 1, got 0; give"),
        (
            {"hidden": 5},
            r"hidden must be the widths of the hidden layers, got 5; for one layer write "
            r"hidden=\(5,\)",
        ),
        ({"prior_scale": 0.0}, "prior_scale must be a finite number above 0, got 0; give"),
        (
            {"num_classes": 3},
            "num_classes must be at least 4, because y holds the class 3, got 3; raise it",
        ),
        ({"y": np.zeros(12, int)}, "num_classes must be a whole number of at least 2, got 1; give"),
    ],
)
def test_bad_input(settings, sentence):
    with pytest.raises(ValueError, match=sentence):
        network(**({"X": X, "y": y} | settings))
