"""Modules of Flax and Equinox are targets: what they compute is what is sampled, predictions are
means over draws.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from flax import linen, nnx
from numpy.testing import assert_allclose
from scipy.stats import norm

import amagold

generator = np.random.default_rng(0)
X = generator.normal(size=(60, 3)).astype(np.float32)
LABELS = (X[:, 0] > 0).astype(int)
NUMBERS = (X @ [1.0, -1.0, 0.5]).astype(np.float32)


class Flat(nnx.Module):
    """With batch statistics and dropout, which have no part in predictions."""

    def __init__(self, outputs):
        rngs = nnx.Rngs(0)
        self.first = nnx.Linear(3, 4, rngs=rngs)
        self.norm = nnx.BatchNorm(4, rngs=rngs)
        self.drop = nnx.Dropout(0.5, rngs=rngs)
        self.head = nnx.Linear(4, outputs, rngs=rngs)

    def __call__(self, x):
        return self.head(self.drop(nnx.relu(self.norm(self.first(x)))))


class WithKey(eqx.Module):
    layers: list
    drop: eqx.nn.Dropout
    key: jax.Array
    scale: np.ndarray
    name: str = "mine"

    def __call__(self, x):
        return self.layers[1](self.drop(jnp.tanh(self.layers[0](x)), key=self.key)) * self.scale


def flax_module(outputs=2):
    return Flat(outputs)


def equinox_module(outputs=2):
    one, two, three = jax.random.split(jax.random.key(0), 3)
    layers = [eqx.nn.Linear(3, 4, key=one), eqx.nn.Linear(4, outputs, key=two)]
    return WithKey(layers, eqx.nn.Dropout(0.5), three, np.ones(1, int))


def outputs_of(module):
    if isinstance(module, nnx.Module):
        own = nnx.clone(module)
        own.eval()
        return np.asarray(own(X))
    return np.asarray(jax.vmap(eqx.nn.inference_mode(module))(X))


MODULES = {"flax": (flax_module, "head"), "equinox": (equinox_module, "layers.1")}
both = pytest.mark.parametrize("library", MODULES)


def likelihoods(target):
    return np.asarray(target.log_likelihoods(target.init, target.data))


@both
def test_densities(library):
    build, head = MODULES[library]
    module = build()
    target = amagold.from_module(module, X, LABELS, prior_scale=0.5)
    logits = outputs_of(module)
    expected = np.asarray(jax.nn.log_softmax(logits))[np.arange(60), LABELS]
    assert_allclose(likelihoods(target), expected, rtol=1e-5, atol=1e-6)
    weights = np.concatenate([np.ravel(leaf) for leaf in target.init.values()])
    assert_allclose(target.log_prior(target.init), -0.5 * np.sum((weights / 0.5) ** 2), rtol=1e-5)
    assert any("0.5^2" in note for note in target.notes)
    # the same numbers by the user's own function, of the last layer alone
    own = amagold.from_module(
        module,
        X,
        LABELS,
        lambda output, example: jax.nn.log_softmax(output)[example.outcome],
        sampled=head,
        prior_scale=lambda path, leaf: 2.0 if path.endswith("bias") else jnp.full(leaf.shape, 3.0),
    )
    assert_allclose(likelihoods(own), expected, rtol=1e-5, atol=1e-6)
    assert {path.rsplit(".", 1)[0] for path in own.init} == {head}
    by_function = amagold.from_module(module, X, LABELS, sampled=lambda path, _: head in path)
    assert set(by_function.init) == set(own.init)


@both
def test_noise(library):
    module = MODULES[library][0](1)
    known = amagold.from_module(module, X, NUMBERS, "regression", noise_scale=0.7)
    expected = norm.logpdf(NUMBERS, outputs_of(module)[:, 0], 0.7)
    assert_allclose(likelihoods(known), expected, rtol=1e-4)
    unknown = amagold.from_module(module, X, NUMBERS[:, None], "regression")
    scale = NUMBERS.std()
    assert_allclose(unknown.init["log_noise_scale"], np.log(scale), rtol=1e-5)
    expected = norm.logpdf(NUMBERS, outputs_of(module)[:, 0], scale)
    assert_allclose(likelihoods(unknown), expected, rtol=1e-4)
    moved = unknown.init | {"log_noise_scale": unknown.init["log_noise_scale"] + 2.0}
    lost = unknown.log_prior(unknown.init) - unknown.log_prior(moved)
    assert_allclose(lost, 0.5, rtol=1e-4)


def test_the_users_module_stays_as_it_is():
    module = flax_module()
    before = jax.tree.map(np.asarray, nnx.state(module, nnx.Param, nnx.BatchStat))
    amagold.from_module(module, X, LABELS)
    assert not module.drop.deterministic  # still training
    after = nnx.state(module, nnx.Param, nnx.BatchStat)
    assert jax.tree.all(jax.tree.map(lambda a, b: bool(np.array_equal(a, b)), before, after))


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_draws_and_predictions(tmp_path):
    """From the trained weights, by name, stored; predictions do not depend on how they are cut."""
    module = equinox_module()
    target = amagold.from_module(module, X, LABELS, sampled="layers.1")
    sampler = amagold.amagold(target, step_size=0.05, num_steps=2, batch_size=20)
    path = tmp_path / "run.zarr"
    options = {"num_chains": 2, "store": path, "progress": False}
    assert amagold.sample(sampler, 6, 20, max_time=1e-6, **options).is_partial
    again = amagold.from_module(equinox_module(), X, LABELS, sampled="layers.1")
    sampler = amagold.amagold(again, step_size=0.05, num_steps=2, batch_size=20)
    run = amagold.resume(path, sampler, progress=False)
    assert set(run.posterior) == {"layers.1.weight", "layers.1.bias"}
    first = run.posterior["layers.1.weight"].to_numpy()[0, 0]
    assert np.abs(first - np.asarray(module.layers[1].weight)).max() < 1.0
    found = amagold.predict(run, target, X)
    draws = [
        {
            name: run.posterior[name].to_numpy()[chain, draw]
            for name in ("layers.1.weight", "layers.1.bias")
        }
        for chain in range(2)
        for draw in range(6)
    ]
    one_by_one = jax.vmap(target.log_likelihood.apply, in_axes=(None, 0))
    each = np.stack([jax.nn.softmax(one_by_one(draw, X)) for draw in draws]).astype(np.float64)
    assert_allclose(found.probabilities, each.mean(axis=0), rtol=1e-5)
    assert_allclose(found.spread, each.std(axis=0, ddof=1), rtol=1e-3, atol=1e-6)
    assert found.num_draws == 12
    single = amagold.metrics.entropy(each).mean(axis=0)
    assert_allclose(found.mean_entropy, single, rtol=1e-4)
    assert_allclose(found.mutual_information, found.entropy - single, atol=1e-6)
    # in other pieces, from the store, and by a function of one's own
    cut = amagold.predict(amagold.load(path), target, X, batch_size=7)
    assert_allclose(cut.mean, found.mean, rtol=1e-6)
    by_hand = amagold.predict(
        amagold.load(path),
        lambda position, x: one_by_one(position, x[None])[0],
        X,
        outputs="logits",
        num_draws=12,
    )
    assert_allclose(by_hand.mean, found.mean, rtol=1e-6)
    assert amagold.predict(run, target, X, num_draws=3).num_draws == 3


@both
def test_optimisers(library):
    """Steps are as long as the optimiser's."""
    module = MODULES[library][0]()
    target = amagold.from_module(module, X, LABELS)
    adam, rate, mu = optax.adam(0.01), 0.01, 0.9
    if library == "flax":
        optimizer = nnx.Optimizer(module, adam, wrt=nnx.Param)
        gradients = jax.tree.map(jnp.ones_like, nnx.state(module, nnx.Param))
        optimizer.update(module, gradients)
        state = optimizer.opt_state
    else:
        weights = eqx.filter(module, eqx.is_inexact_array)
        _, state = adam.update(jax.tree.map(jnp.ones_like, weights), adam.init(weights))
    found = amagold.from_optimizer(target, state, rate)
    # all gradients were one, and so are second moments without their bias
    assert all(np.allclose(leaf, 1.0, rtol=1e-3) for leaf in found["mass"].values())
    b = (1 - mu) / (1 + mu)
    h = found["step_size"] ** 2
    assert_allclose(h / (1 + b), rate * (1 - mu) / 60, rtol=1e-3)  # what a gradient moves by
    assert_allclose(found["friction"] * found["step_size"], b, rtol=1e-5)
    amagold.amagold(target, batch_size=10, **found).check(target.init)
    momentum = optax.sgd(0.1, momentum=0.5).init(target.init)
    plain = amagold.from_optimizer(target, momentum, 0.1, 0.5)
    assert plain["mass"] == 1.0
    assert_allclose(plain["step_size"] ** 2 / (1 + 1 / 3), 0.1 / 60, rtol=1e-5)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_last_layer(tmp_path):
    """A regression on the trunk's features, in memory or on disk; predictions through the trunk."""
    trunk = eqx.nn.Sequential([eqx.nn.Linear(3, 2, key=jax.random.key(0)), eqx.nn.Lambda(jnp.tanh)])
    layer = amagold.last_layer(trunk, X, LABELS, batch_size=25)
    features = np.asarray(jax.vmap(trunk)(X))
    assert_allclose(layer.prepare(X), features, rtol=1e-6)
    assert layer.posterior.bounds is not None
    again = amagold.last_layer(lambda rows: jax.vmap(trunk)(rows), X, LABELS, folder=tmp_path)
    run = amagold.sample(layer.posterior, 50, num_chains=1, progress=False)
    position = np.full((3, 2), 0.1, np.float32)
    assert_allclose(
        again.posterior.log_prior(position), layer.posterior.log_prior(position), rtol=1e-4
    )
    found = amagold.predict(run, layer, X)
    each = run.posterior["theta"].to_numpy()[0]
    logits = each[:, None, 0] + features @ each[:, 1:]
    assert_allclose(found.mean, np.asarray(jax.nn.softmax(logits)).mean(axis=0), rtol=1e-4)


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_last_layer_of_numbers():
    layer = amagold.last_layer(lambda rows: rows, X, NUMBERS + 1.0, "regression", noise_scale=0.5)
    run = amagold.sample(layer.posterior, 100, num_chains=1, progress=False)
    found = amagold.predict(run, layer, X)
    # the posterior's mean is that of least squares, but for the prior
    design = np.column_stack([np.ones(60), X])
    fitted = design @ np.linalg.lstsq(design, NUMBERS + 1.0, rcond=None)[0]
    assert_allclose(found.mean, fitted, atol=0.3)
    assert_allclose(found.total_spread, np.sqrt(found.spread**2 + 0.25))


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: amagold.from_module(linen.Dense(2), X, LABELS), "Flax Linen"),
        (lambda: amagold.from_module(X, X, LABELS), "Flax NNX or an Equinox"),
        (lambda: amagold.from_module(equinox_module(), X, LABELS, "clasification"), "likelihood"),
        (lambda: amagold.from_module(equinox_module(), X, LABELS + 1), "between 0 and 1"),
        (lambda: amagold.from_module(equinox_module(1), X, LABELS), "one logit for each class"),
        (lambda: amagold.from_module(equinox_module(), X, X, "regression"), "shape"),
        (lambda: amagold.from_module(equinox_module(), X[:, :2], LABELS), "cannot be called"),
        (lambda: amagold.from_module(equinox_module(), X, LABELS, sampled="tail"), "'tail'"),
        (lambda: amagold.from_module(equinox_module(), X, LABELS, prior_scale=0.0), "prior_scale"),
        (lambda: amagold.from_module(equinox_module(), X, LABELS, noise_scale=1.0), "regression"),
        (lambda: amagold.last_layer(lambda rows: rows[0], X, LABELS), "one row of features"),
        (lambda: amagold.last_layer(lambda rows: rows, X, LABELS, "own"), "LinearLikelihood"),
    ],
)
def test_sentences(call, words):
    with pytest.raises(ValueError, match=words):
        call()
