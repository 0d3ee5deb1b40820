"""Models that cannot be sampled row by row are refused in a sentence that says why and what to
do.
"""

import functools

import jax.numpy as jnp
import numpy as np
import pytest

import amagold
from amagold.core import optional_packages

pytest.importorskip("numpyro")
import numpyro
from numpyro import distributions as dist
from numpyro.contrib.control_flow import scan
from numpyro_models import BINARY, EVERY, NUMBERS, X, coefficients, logistic, nested


def latent_inside(X, y):
    with numpyro.plate("data", X.shape[0]):
        z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        numpyro.sample("y", dist.Normal(z, 1.0), obs=y)


def discrete(y):
    k = numpyro.sample("k", dist.Categorical(jnp.ones(3) / 3.0))
    with numpyro.plate("data", y.shape[0]):
        numpyro.sample("y", dist.Normal(k, 1.0), obs=y)


def sized_by_rows(y):
    z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([y.shape[0]]))
    with numpyro.plate("data", y.shape[0]) as rows:
        numpyro.sample("y", dist.Normal(z[rows], 1.0), obs=y)


def twice(X, y):
    b = coefficients()
    for name in ("first", "second"):
        with numpyro.plate("data", X.shape[0]):
            numpyro.sample(name, dist.Normal(X @ b, 1.0), obs=y)


def subsampled(X, y):
    b = coefficients()
    with numpyro.plate("data", X.shape[0], subsample_size=10) as rows:
        numpyro.sample("y", dist.Normal(X[rows] @ b, 1.0), obs=y[rows])


def centred(X, y):
    b = coefficients()
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Normal((X - X.mean(axis=0)) @ b, 1.0), obs=y)


def standardised(X, y):
    b = coefficients()
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Normal((X / X.std(axis=0)) @ b, 1.0), obs=y)


def prior_of_rows(y):
    mu = numpyro.sample("mu", dist.Normal(y.mean(), 1.0))
    with numpyro.plate("data", y.shape[0]):
        numpyro.sample("y", dist.Normal(mu, 1.0), obs=y)


def prior_of_size(y):
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0 / y.shape[0]))
    with numpyro.plate("data", y.shape[0]):
        numpyro.sample("y", dist.Normal(mu, 1.0), obs=y)


def observed_outside(X, y):
    b = coefficients()
    numpyro.sample("total", dist.Normal(jnp.sum(X @ b), 1.0), obs=y.sum())
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Normal(X @ b, 1.0), obs=y)


def shape_of_values(y, group):
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0).expand([int(group.max()) + 1]))
    with numpyro.plate("data", y.shape[0]):
        numpyro.sample("y", dist.Normal(mu[group], 1.0), obs=y)


def from_outside(size):
    b = coefficients()
    with numpyro.plate("data", size) as rows:
        numpyro.sample("y", dist.Normal(jnp.asarray(X)[rows] @ b, 1.0), obs=NUMBERS[0])


def rows_last(Y):
    mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
    with numpyro.plate("outcome", 2, dim=-2), numpyro.plate("data", Y.shape[1], dim=-1):
        numpyro.sample("y", dist.Normal(mu, 1.0), obs=Y)


def walk(y):
    def step(x, _):
        x = numpyro.sample("x", dist.Normal(x, 1.0))
        return x, x

    last, _ = scan(step, 0.0, jnp.arange(3))
    with numpyro.plate("data", y.shape[0]):
        numpyro.sample("y", dist.Normal(last, 1.0), obs=y)


def nothing_latent(y):
    with numpyro.plate("data", y.shape[0]):
        numpyro.sample("y", dist.Normal(0.0, 1.0), obs=y)


GROUP = np.zeros(len(X), int)
REFUSED = {
    "latent inside": (latent_inside, (X, BINARY), {}, "'z' must not be latent inside .*z\\[group"),
    "discrete": (discrete, (NUMBERS,), {}, "'k' must be continuous"),
    "sized by rows": (sized_by_rows, (NUMBERS,), {}, "'z' must have a shape that does not depend"),
    "twice": (twice, (X, NUMBERS), {}, "makes 2 plates called 'data'"),
    "subsampled": (subsampled, (X, NUMBERS), {}, "must not set subsample_size, got 10 of 60"),
    "another plate": (logistic, (X, BINARY), {"plate": "rows"}, "\\('data'\\), got 'rows'"),
    "centred": (centred, (X, NUMBERS), {}, "must treat rows alike"),
    "standardised": (standardised, (X, NUMBERS), {}, "must treat rows alike"),
    "prior of rows": (prior_of_rows, (NUMBERS,), {}, "'mu' outside the plate 'data' must not"),
    "prior of size": (prior_of_size, (NUMBERS,), {}, "'mu' outside the plate 'data' must not"),
    "observed outside": (observed_outside, (X, NUMBERS), {}, "'total' outside the plate"),
    "shape of values": (shape_of_values, (NUMBERS, GROUP), {}, "pass the number as an argument"),
    "from outside": (from_outside, (len(X),), {}, "args must hold the data"),
    "rows last": (rows_last, (np.ones((2, 60), np.float32),), {}, "args must hold the data"),
    "scan": (walk, (NUMBERS,), {}, "no numpyro scan or cond"),
    "nothing latent": (nothing_latent, (NUMBERS,), {}, "must have a latent site"),
    "not a function": ("model", (), {}, "model must be a function"),
    "not finite": (logistic, (X * np.nan, BINARY), {}, "must be finite"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_sentence_says_what_to_do(name):
    model, args, kwargs, words = REFUSED[name]
    with pytest.raises(ValueError, match=words):
        amagold.from_numpyro(model, *args, **kwargs)


def test_what_remedies_say_works():
    """Latent values of rows outside, by a column of numbers; a scan as a whole."""

    def outside(y, group, size):
        with numpyro.plate("unit", size):
            z = numpyro.sample("z", dist.Normal(0.0, 1.0))
        with numpyro.plate("data", y.shape[0]):
            numpyro.sample("y", dist.Normal(z[group], 1.0), obs=y)

    target = amagold.from_numpyro(outside, NUMBERS, np.arange(len(X)), len(X))
    assert target.init["z"].shape == (len(X),)
    assert isinstance(amagold.from_numpyro(walk, NUMBERS, plate=None), amagold.Density)
    assert isinstance(amagold.from_numpyro(latent_inside, X, NUMBERS, plate=None), amagold.Density)


def test_arrays_as_long_as_the_plate_can_be_bound():
    """An array of constants that happens to have as many entries as there are rows."""

    def model(scales, y):
        mu = numpyro.sample("mu", dist.Normal(0.0, scales).to_event(1))
        with numpyro.plate("data", y.shape[0]):
            numpyro.sample("y", dist.Normal(mu.sum(), 1.0), obs=y)

    scales = np.ones(len(X), np.float32)
    with pytest.raises(ValueError, match="shape that does not depend"):
        amagold.from_numpyro(model, scales, NUMBERS)
    target = amagold.from_numpyro(functools.partial(model, scales), NUMBERS)
    assert target.init["mu"].shape == (len(X),)


def test_arrays_beside_the_rows_reach_the_model():
    def model(X, y, prior):
        b = numpyro.sample("b", dist.Normal(prior["mean"], prior["scale"]).to_event(1))
        with numpyro.plate("data", X.shape[0]):
            numpyro.sample("y", dist.Bernoulli(logits=X @ b), obs=y)

    prior = {"mean": np.ones(3, np.float32), "scale": np.full(3, 2.0, np.float32)}
    target = amagold.from_numpyro(model, X, BINARY, prior)
    at = {"b": jnp.zeros(3)}
    wanted = dist.Normal(1.0, 2.0).log_prob(jnp.zeros(3)).sum()
    np.testing.assert_allclose(target.log_prior(at), wanted, rtol=1e-6)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_axes_are_called_as_their_plates():
    case = EVERY["groups"]
    run = amagold.sample(
        amagold.from_numpyro(case.model, *case.args), 20, 40, num_chains=2, progress=False
    )
    assert run.posterior["effect"].dims == ("chain", "draw", "school")
    assert run.posterior["range"].dims == ("chain", "draw")
    effect = run.posterior["effect"].to_numpy()
    np.testing.assert_allclose(
        run.posterior["range"], effect.max(-1) - effect.min(-1), rtol=1e-4, atol=1e-5
    )
    two = amagold.from_numpyro(nested, np.ones((60, 2), np.float32))
    assert dict(two.labels.dims)["mu"] == ("outcome",)


def test_deterministic_sites_of_rows_are_said_and_left_out():
    def model(X, y):
        b = coefficients()
        numpyro.deterministic("norm", jnp.sum(b**2))
        numpyro.deterministic("mean", (X @ b).mean())
        with numpyro.plate("data", X.shape[0]):
            z = numpyro.deterministic("z", X @ b)
            numpyro.sample("y", dist.Bernoulli(logits=z), obs=y)

    target = amagold.from_numpyro(model, X, BINARY)
    assert set(target.derived({"b": jnp.zeros(3)})) == {"norm"}
    assert "'z', 'mean'" in target.notes[0]


def test_a_missing_package_is_named(monkeypatch):
    def missing(name):
        raise ImportError(name)

    monkeypatch.setattr(optional_packages.importlib, "import_module", missing)
    with pytest.raises(ImportError, match=r"needs numpyro.*pip install 'amagold\[numpyro\]'"):
        amagold.from_numpyro(logistic, X, BINARY)


def test_improper_priors_are_taken():
    """They have no draws to see the model by."""

    def model(X, y):
        b = numpyro.sample("b", dist.ImproperUniform(dist.constraints.real_vector, (), (3,)))
        scale = numpyro.sample("scale", dist.ImproperUniform(dist.constraints.positive, (), ()))
        with numpyro.plate("data", X.shape[0]):
            numpyro.sample("y", dist.Normal(X @ b, scale), obs=y)

    target = amagold.from_numpyro(model, X, NUMBERS)
    assert {name: zero.shape for name, zero in target.init.items()} == {"b": (3,), "scale": ()}
    assert target.bounds is not None
    # flat in the scale: the volume of its logarithm alone
    assert float(target.log_prior({"b": jnp.ones(3), "scale": jnp.float32(0.7)})) == pytest.approx(
        0.7
    )
