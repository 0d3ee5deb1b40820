"""NumPyro models with a data plate, and what they are called with."""

from functools import partial
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist, handlers

NUM_ROWS, WIDTH = 60, 3
_random = np.random.default_rng(0)
X = _random.normal(size=(NUM_ROWS, WIDTH)).astype(np.float32)
TRUTH = np.array([0.7, -0.4, 0.2], np.float32)
BINARY = (_random.random(NUM_ROWS) < 1.0 / (1.0 + np.exp(-X @ TRUTH))).astype(np.float32)
COUNTS = _random.poisson(np.exp(X @ TRUTH)).astype(np.float32)
NUMBERS = (3.0 + X @ TRUTH + 0.5 * _random.normal(size=NUM_ROWS)).astype(np.float32)
GROUP = _random.integers(0, 4, NUM_ROWS)
WEIGHTS = _random.uniform(0.5, 2.0, NUM_ROWS).astype(np.float32)
MASK = _random.random(NUM_ROWS) < 0.8
GRADES = _random.integers(0, 3, NUM_ROWS)


class Case(NamedTuple):
    model: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any] = {}  # noqa: RUF012


def coefficients():
    return numpyro.sample("b", dist.Normal(0.0, 1.0).expand([WIDTH]).to_event(1))


def logistic(X, y):
    b = coefficients()
    numpyro.deterministic("odds", jnp.exp(b))
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=X @ b), obs=y)


def by_index(X, y, size):
    """The plate's size is a number of its own, and rows are picked by its indices."""
    b = coefficients()
    with numpyro.plate("data", size) as rows:
        numpyro.sample("y", dist.Bernoulli(logits=X[rows] @ b), obs=y[rows])


def by_subsample(X, y, size):
    b = coefficients()
    with numpyro.plate("data", size):
        rows = numpyro.subsample(X, event_dim=1)
        numpyro.sample("y", dist.Bernoulli(logits=rows @ b), obs=numpyro.subsample(y, event_dim=0))


def poisson(data):
    b = coefficients()
    with numpyro.plate("data", len(data["y"])):
        numpyro.sample("y", dist.Poisson(data["exposure"] * jnp.exp(data["X"] @ b)), obs=data["y"])


def binomial(X, y, trials=7):
    b = coefficients()
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Binomial(trials, logits=0.5 + X @ b), obs=y)


def negative_binomial(X, y):
    b = coefficients()
    shape = numpyro.sample("shape", dist.Exponential(1.0))
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.NegativeBinomial2(jnp.exp(X @ b), shape), obs=y)


def linear(X, y):
    b = coefficients()
    a = numpyro.sample("a", dist.Normal(0.0, 5.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Normal(a + X @ b, sigma), obs=y)


def linear_with_known_noise(X, y, scale):
    b = coefficients()
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Normal(X @ b, scale), obs=y)


def robust(X, y):
    b = coefficients()
    sigma = numpyro.sample("sigma", dist.HalfCauchy(2.0))
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.StudentT(4.0, 3.0 + X @ b, sigma), obs=y)


def groups(y, group, num_groups):
    """A plate of its own for the coefficients of groups."""
    tau = numpyro.sample("tau", dist.HalfNormal(1.0))
    with numpyro.plate("school", num_groups):
        effect = numpyro.sample("effect", dist.Normal(0.0, tau))
    numpyro.deterministic("range", effect.max() - effect.min())
    with numpyro.plate("data", y.shape[0]):
        numpyro.sample("y", dist.Normal(3.0 + effect[group], 0.8), obs=y)


def constrained(X, y, grades):
    """Scale, simplex and cut points; two observed sites of several kinds; a factor outside."""
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    shares = numpyro.sample("shares", dist.Dirichlet(jnp.array([2.0, 3.0, 4.0])))
    cuts = numpyro.sample(
        "cuts",
        dist.TransformedDistribution(
            dist.Normal(0.0, 1.0).expand([2]).to_event(1), dist.transforms.OrderedTransform()
        ),
    )
    upper = numpyro.sample("upper", dist.Uniform(0.0, sigma))
    numpyro.factor("tilt", -0.3 * upper**2)
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Normal(X @ shares, sigma), obs=y)
        numpyro.sample("grade", dist.OrderedLogistic(X[:, 0] * upper, cuts), obs=grades)


def masked_and_scaled(X, y, weights, mask):
    b = coefficients()
    with numpyro.plate("data", X.shape[0]), handlers.scale(scale=weights), handlers.mask(mask=mask):
        numpyro.sample("y", dist.Bernoulli(logits=X @ b), obs=y)


def nested(Y):
    """Two outcomes of every row, the rows first."""
    with numpyro.plate("outcome", 2, dim=-1):
        mu = numpyro.sample("mu", dist.Normal(0.0, 1.0))
    with numpyro.plate("data", Y.shape[0], dim=-2), numpyro.plate("outcomes", 2, dim=-1):
        numpyro.sample("y", dist.Normal(mu, 1.0), obs=Y)


def scaled_outside(model):
    return handlers.scale(model, scale=0.7)


# recognised by their likelihood
LINEAR = {
    "logistic": Case(logistic, (X, BINARY)),
    "by index": Case(by_index, (X, BINARY, NUM_ROWS)),
    "by subsample": Case(by_subsample, (X,), {"y": BINARY, "size": NUM_ROWS}),
    "poisson": Case(poisson, ({"X": X, "y": COUNTS, "exposure": WEIGHTS},)),
    "binomial": Case(binomial, (X, np.minimum(COUNTS, 7.0))),
    "negative binomial": Case(negative_binomial, (X, COUNTS)),
    "linear": Case(linear, (X, NUMBERS)),
    "known noise": Case(linear_with_known_noise, (X, NUMBERS, WEIGHTS)),
    "robust": Case(robust, (X, NUMBERS)),
    "groups": Case(groups, (NUMBERS, GROUP, 4)),
    "masked and scaled": Case(masked_and_scaled, (X, BINARY, WEIGHTS, MASK)),
    "scaled outside": Case(scaled_outside(logistic), (X, BINARY)),
}
OTHER = {
    "constrained": Case(constrained, (X, NUMBERS, GRADES)),
    "nested": Case(nested, (np.stack([NUMBERS, BINARY], axis=1),)),
}
EVERY = LINEAR | OTHER


def other_predictor(kind, X, y):
    """Likelihoods that are nearly linear, and are not."""
    b = coefficients()
    c = numpyro.sample("c", dist.HalfNormal(1.0))
    z = {
        "bent": lambda: jnp.tanh(X @ b),
        "product": lambda: X @ (b * b[::-1]),
        "scaled": lambda: c * (X @ b),
        "clipped": lambda: jnp.clip(X @ b, -3.0, 3.0),
        "interaction": lambda: X @ b + (X @ b) ** 2,
    }[kind]()
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=z), obs=y)


NOT_LINEAR = {
    kind: Case(partial(other_predictor, kind), (X, BINARY))
    for kind in ("bent", "product", "scaled", "clipped", "interaction")
}

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0], np.float32)
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0], np.float32)


def eight_schools(centred, errors, effects):
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    tau = numpyro.sample("tau", dist.HalfCauchy(5.0))
    with numpyro.plate("school", len(errors)):
        if centred:
            theta = numpyro.sample("theta", dist.Normal(mu, tau))
        else:
            raw = numpyro.sample("raw", dist.Normal(0.0, 1.0))
            theta = numpyro.deterministic("theta", mu + tau * raw)
        numpyro.sample("effect", dist.Normal(theta, errors), obs=effects)


SCHOOLS = {
    name: Case(partial(eight_schools, centred), (ERRORS, EFFECTS))
    for name, centred in (("centred", True), ("non-centred", False))
}
