"""Posteriors of posteriordb that are regressions, and rates."""

from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import published_data as data
from applied import normal, single
from numpyro import distributions as dist
from published import Published, flat, flat_above_zero, share, with_sigma

import amagold

# regressions with flat priors


def logistic(has_alpha, X, y):
    alpha = numpyro.sample("alpha", flat()) if has_alpha else 0.0
    beta = numpyro.sample("beta", flat((X.shape[1],)))
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=alpha + X @ beta), obs=y)


def _logistic_by_hand(has_alpha, X, y):
    rows = {"x": X, "y": y}

    def outcome(z, row):
        return jax.nn.log_sigmoid((2.0 * row["y"] - 1.0) * z)

    columns = (1, "x") if has_alpha else "x"
    return amagold.Posterior(amagold.LinearLikelihood(outcome, columns), lambda at: 0.0, rows)


def _named_logistic(has_alpha, draws):
    (theta,) = draws.values()
    return {"alpha": theta[..., 0], "beta": theta[..., 1:]} if has_alpha else {"beta": theta}


def _wells(*columns):
    table = data.wells()
    made = {
        "one": np.ones(len(table["switch"])),
        "distance": table["distance"],
        "hundreds": table["distance"] / 100.0,
        "arsenic": table["arsenic"],
        "c_hundreds": (table["distance"] - table["distance"].mean()) / 100.0,
        "c_arsenic": table["arsenic"] - table["arsenic"].mean(),
    }
    made["both"] = made["c_hundreds"] * made["c_arsenic"]
    return single(np.stack([made[name] for name in columns], axis=1)), single(table["switch"])


def linear(X, y):
    beta = numpyro.sample("beta", flat((X.shape[1],)))
    sigma = numpyro.sample("sigma", flat_above_zero())
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Normal(X @ beta, sigma), obs=y)


def _linear_by_hand(X, y):
    def outcome(z, row):
        return normal(row["y"], z["beta"], z["log_sigma"])

    likelihood = amagold.LinearLikelihood(outcome, {"beta": "x", "log_sigma": 1})
    # flat in sigma
    return amagold.Posterior(likelihood, lambda at: at["log_sigma"], {"x": X, "y": y})


def _bushes(*columns):
    table = data.bushes()
    chosen = [np.ones(46), *(table[name] for name in columns)]
    return single(np.stack(chosen, axis=1)), single(table["weight"])


def radon_columns(*names):
    table = data.radon()
    county = table["county"].astype(np.int32)
    return tuple(county if name == "county" else single(table[name]) for name in names)


# rates and dogs


def rates(k1, k2):
    for name, k in (("theta1", k1), ("theta2", k2)):
        theta = numpyro.sample(name, dist.Beta(1.0, 1.0))
        numpyro.sample(f"k_{name}", dist.Binomial(10, probs=theta), obs=k)


def _rates_by_hand():
    def log_density(at):
        # Beta(k + 1, n - k + 1) of p = logistic(z), with the volume of the logit
        of = lambda z, k: (k + 1) * jax.nn.log_sigmoid(z) + (11 - k) * jax.nn.log_sigmoid(-z)  # noqa: E731
        return of(at["z1"], 5.0) + of(at["z2"], 7.0)

    return amagold.Density(log_density, init={"z1": np.float32(0), "z2": np.float32(0)})


def one_rate(k):
    theta = numpyro.sample("theta", dist.Beta(1.0, 1.0))
    with numpyro.plate("data", k.shape[0]):
        numpyro.sample("k", dist.Binomial(10, probs=theta), obs=k)


def _one_rate_by_hand():
    def log_density(z):
        return 11.0 * (jax.nn.log_sigmoid(z) + jax.nn.log_sigmoid(-z))

    return amagold.Density(log_density, init=np.float32(0.0))


def dogs(avoided, shocked, y):
    beta = numpyro.sample("beta", dist.Normal(0.0, 100.0).expand([3]).to_event(1))
    with numpyro.plate("data", y.shape[0]):
        z = beta[0] + beta[1] * avoided + beta[2] * shocked
        numpyro.sample("y", dist.Bernoulli(logits=z), obs=y)


def learning_dogs(avoided, shocked, y):
    """P(shock) = a^shocks b^avoidances; sure in the first trial, which says nothing."""
    a = numpyro.sample("a", dist.Uniform(0.0, 1.0))
    b = numpyro.sample("b", dist.Uniform(0.0, 1.0))
    with numpyro.plate("data", y.shape[0]):
        log_p = shocked * jnp.log(a) + avoided * jnp.log(b)
        numpyro.factor("y", jnp.where(y > 0, log_p, jnp.log1p(-jnp.exp(log_p))))


def _learning_by_hand():
    avoided, shocked, y = _dogs(first=False)

    def likelihood(at, row):
        log_p = -row["shocked"] * jax.nn.softplus(-at["za"])
        log_p = log_p - row["avoided"] * jax.nn.softplus(-at["zb"])
        return jnp.where(row["y"] > 0, log_p, jnp.log1p(-jnp.exp(log_p)))

    def prior(at):  # the volume of the logits
        return sum(jax.nn.log_sigmoid(z) + jax.nn.log_sigmoid(-z) for z in at.values())

    rows = {"avoided": avoided, "shocked": shocked, "y": y}
    init = {"za": np.float32(2.0), "zb": np.float32(1.0)}
    return amagold.Posterior(likelihood, prior, rows, init=init)


def _dogs(*, first=True):
    table = data.dogs()
    kept = (table["avoided"] + table["shocked"] > 0) | first
    return tuple(single(table[name][kept]) for name in ("avoided", "shocked", "y"))


def _dogs_by_hand():
    avoided, shocked, y = _dogs()
    rows = {"avoided": avoided, "shocked": shocked, "y": y}

    def outcome(z, row):
        return jax.nn.log_sigmoid((2.0 * row["y"] - 1.0) * z)

    likelihood = amagold.LinearLikelihood(outcome, (1, "avoided", "shocked"))
    return amagold.Posterior(likelihood, lambda at: -0.5 * jnp.sum((at / 100.0) ** 2), rows)


def _logistics(name, has_alpha, *columns):
    X, y = _wells(*columns)
    return Published(
        name,
        partial(logistic, has_alpha),
        (X, y),
        partial(_logistic_by_hand, has_alpha, X, y),
        named=partial(_named_logistic, has_alpha),
    )


def _mesquite(name, *columns):
    X, y = _bushes(*columns)
    return Published(name, linear, (X, y), partial(_linear_by_hand, X, y), named=with_sigma)


def _named_dogs(draws):
    (beta,) = draws.values()
    return {"beta": beta}


POSTERIORS = [
    _logistics("wells_dist", False, "one", "distance"),
    _logistics("wells_dist100ars", True, "hundreds", "arsenic"),
    _logistics("wells_interaction_c", True, "c_hundreds", "c_arsenic", "both"),
    _mesquite("logmesquite_logvolume", "volume"),
    _mesquite("logmesquite_logvas", "volume", "area", "shape", "height", "density", "group"),
    Published(
        "Rate_2",
        rates,
        (5, 7),
        _rates_by_hand,
        None,
        lambda draws: {"theta1": share(draws["z1"]), "theta2": share(draws["z2"])},
    ),
    Published(
        "Rate_5",
        one_rate,
        (single([0.0, 10.0]),),
        _one_rate_by_hand,
        named=lambda draws: {"theta": share(*draws.values())},
    ),
    Published("dogs", dogs, _dogs(), _dogs_by_hand, named=_named_dogs),
    Published(
        "dogs_hierarchical",
        learning_dogs,
        _dogs(first=False),
        _learning_by_hand,
        named=lambda draws: {"a": share(draws["za"]), "b": share(draws["zb"])},
    ),
]
