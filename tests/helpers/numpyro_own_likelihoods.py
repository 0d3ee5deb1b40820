"""NumPyro models whose likelihood is of no known kind: its bounds are found."""

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist, handlers
from numpyro_models import Case

NUM_ROWS, WIDTH = 10_000, 3
_random = np.random.default_rng(11)
X = _random.normal(size=(NUM_ROWS, WIDTH)).astype(np.float32)
ETA = X @ np.array([0.3, -0.2, 0.1])
COUNTS = (_random.poisson(np.exp(ETA)) * (_random.random(NUM_ROWS) < 0.7)).astype(np.float32)
BINARY = (_random.random(NUM_ROWS) < 1.0 - np.exp(-np.exp(ETA))).astype(np.float32)
TIMES = _random.exponential(np.exp(-ETA)).astype(np.float32)
NUMBERS = (ETA + 0.7 * _random.normal(size=NUM_ROWS)).astype(np.float32)
LIMIT = np.float32(1.0)
IN_TWO = np.where(_random.random(NUM_ROWS) < 0.6, ETA, ETA + 4.0).astype(np.float32)
IN_TWO += _random.normal(size=NUM_ROWS).astype(np.float32)


def coefficients(name="b"):
    return numpyro.sample(name, dist.Normal(0.0, 1.0).expand([WIDTH]).to_event(1))


def zero_inflated(X, y):
    b, g = coefficients(), coefficients("g")
    with numpyro.plate("data", X.shape[0]):
        gate = jax.nn.sigmoid(X @ g - 1.0)
        numpyro.sample("y", dist.ZeroInflatedPoisson(gate, jnp.exp(X @ b)), obs=y)


def zero_inflated_by_logits(X, y):
    b = coefficients()
    gate = numpyro.sample("gate", dist.Normal(0.0, 1.0))
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample(
            "y",
            dist.ZeroInflatedDistribution(dist.Poisson(jnp.exp(X @ b)), gate_logits=gate),
            obs=y,
        )


def censored(X, y, is_seen):
    """Exponential times: the density of those that ended, by a mask, and a factor for the rest."""
    b = coefficients()
    with numpyro.plate("data", X.shape[0]):
        rate = jnp.exp(X @ b)
        with handlers.mask(mask=is_seen):
            numpyro.sample("y", dist.Exponential(rate), obs=y)
        numpyro.factor("censored", jnp.where(is_seen, 0.0, -rate * y))


def censored_normal(X, y, is_seen):
    b = coefficients()
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    with numpyro.plate("data", X.shape[0]):
        noise = dist.Normal(X @ b, sigma)
        beyond = jnp.log1p(-noise.cdf(y))
        numpyro.factor("y", jnp.where(is_seen, noise.log_prob(y), beyond))


def own_link(X, y):
    """The complementary log-log link."""
    b = coefficients()
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Bernoulli(probs=1.0 - jnp.exp(-jnp.exp(X @ b))), obs=y)


def truncated(X, y):
    """Counts from one."""
    b = coefficients()
    with numpyro.plate("data", X.shape[0]):
        rate = jnp.exp(X @ b)
        numpyro.sample("y", dist.Poisson(rate), obs=y)
        numpyro.factor("from_one", -jnp.log(-jnp.expm1(-rate)))


def truncated_normal(X, y):
    """Numbers that are seen above zero alone."""
    b = coefficients()
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.TruncatedNormal(X @ b, sigma, low=0.0), obs=y)


def mixture(X, y):
    """Two components of known places, whose share is a parameter."""
    b = coefficients()
    share = numpyro.sample("share", dist.Beta(2.0, 2.0))
    with numpyro.plate("data", X.shape[0]):
        z = X @ b
        each = jnp.stack([dist.Normal(z, 1.0).log_prob(y), dist.Normal(z + 4, 1.0).log_prob(y)])
        shares = jnp.log(jnp.stack([share, 1.0 - share]))
        numpyro.factor("y", jax.scipy.special.logsumexp(shares[:, None] + each, axis=0))


def two_kinds(X, y, is_above):
    """Observed sites of two kinds that share a predictor."""
    b = coefficients()
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    with numpyro.plate("data", X.shape[0]):
        z = X @ b
        numpyro.sample("y", dist.Normal(z, sigma), obs=y)
        numpyro.sample("is_above", dist.Bernoulli(logits=2.0 * z - 1.0), obs=is_above)


@jax.jit
def _rate(X, b):
    return jax.nn.softplus(1.0 + X @ b)


def in_a_function(X, y):
    """The predictor is within a function of the user's own that JAX compiles."""
    b = coefficients()
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Poisson(_rate(X, b)), obs=y)


def softmax(X, y):
    weights = numpyro.sample("W", dist.Normal(0.0, 1.0).expand([WIDTH, 2]).to_event(2))
    with numpyro.plate("data", X.shape[0]):
        z = jnp.concatenate([X @ weights, jnp.zeros((X.shape[0], 1))], axis=1)
        numpyro.sample("y", dist.Categorical(logits=z), obs=y)


# with how many numbers of the position each row has
FOUND = {
    "zero-inflated": (Case(zero_inflated, (X, COUNTS)), 2),
    "zero-inflated by logits": (Case(zero_inflated_by_logits, (X, COUNTS)), 2),
    "censored": (Case(censored, (X, np.minimum(TIMES, LIMIT), TIMES < LIMIT)), 1),
    "censored normal": (
        Case(censored_normal, (X, np.minimum(NUMBERS, LIMIT), NUMBERS < LIMIT)),
        2,
    ),
    "own link": (Case(own_link, (X, BINARY)), 1),
    "truncated": (Case(truncated, (X, COUNTS + 1.0)), 1),
    "truncated normal": (Case(truncated_normal, (X[NUMBERS > 0], NUMBERS[NUMBERS > 0])), 2),
    "mixture": (Case(mixture, (X, IN_TWO)), 2),
    "two kinds": (Case(two_kinds, (X, NUMBERS, BINARY)), 2),
    "in a function": (Case(in_a_function, (X, COUNTS)), 1),
    "softmax": (Case(softmax, (X, np.minimum(COUNTS, 2).astype(int))), 2),
}
