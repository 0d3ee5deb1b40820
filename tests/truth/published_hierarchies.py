"""Posteriors of posteriordb with many scales: hierarchies, Gaussian processes and a mixture."""

from functools import partial

import applied_groups
import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import published_data as data
from applied import half_normal, normal, single
from numpyro import distributions as dist
from numpyro.distributions import constraints
from published import Published, flat, share, with_sigma
from published_regressions import radon_columns

import amagold

# eight schools


def schools(is_centred, errors, effects):
    mu = numpyro.sample("mu", dist.Normal(0.0, 5.0))
    tau = numpyro.sample("tau", dist.HalfCauchy(5.0))
    with numpyro.plate("school", 8):
        if is_centred:
            theta = numpyro.sample("theta", dist.Normal(mu, tau))
        else:
            raw = numpyro.sample("raw", dist.Normal(0.0, 1.0))
            theta = numpyro.deterministic("theta", mu + tau * raw)
        numpyro.sample("effect", dist.Normal(theta, errors), obs=effects)


def _named_schools(draws):
    tau = np.exp(draws["log_tau"])
    theta = draws.get("theta")
    if theta is None:
        theta = draws["mu"][..., None] + tau[..., None] * draws["eta"]
    return {"mu": draws["mu"], "tau": tau, "theta": theta}


SCHOOLS = (single(applied_groups.ERRORS), single(applied_groups.EFFECTS))


def radon_partially_pooled(floor, county, y):
    mu = numpyro.sample("mu", dist.Normal(0.0, 10.0))
    beta = numpyro.sample("beta", dist.Normal(0.0, 10.0))
    tau = numpyro.sample("tau", dist.HalfNormal(1.0))
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    with numpyro.plate("counties", 85):
        alpha = numpyro.sample("alpha", dist.Normal(mu, tau))
    with numpyro.plate("data", floor.shape[0]):
        numpyro.sample("y", dist.Normal(alpha[county] + beta * floor, sigma), obs=y)


def _named_counties(draws):
    return draws | {"tau": np.exp(draws["log_tau"]), "sigma": np.exp(draws["log_sigma"])}


def falcons(X, year, y):
    beta = numpyro.sample("beta", flat((4,)))
    sigma = numpyro.sample("sigma", dist.Uniform(0.0, 5.0))
    with numpyro.plate("years", 40):
        eps = numpyro.sample("eps", dist.Normal(0.0, sigma))
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Poisson(jnp.exp(X @ beta + eps[year])), obs=y)


def _falcons():
    powers = np.stack([data.YEARS**power for power in range(4)], axis=1)
    return single(powers), np.arange(40, dtype=np.int32), single(data.FALCONS)


def _falcons_by_hand():
    X, year, y = _falcons()

    def likelihood(at, row):
        z = row["x"] @ at["beta"] + at["eps"][row["year"]]
        return row["y"] * z - jnp.exp(z)

    def prior(at):
        return normal(at["eps"], 0.0, at["log_sigma"]).sum() + at["log_sigma"]

    init = {"beta": single([4.0, 1.0, 0.0, 0.0]), "eps": np.zeros(40, np.float32)}
    init |= {"log_sigma": np.float32(-2.0)}
    return amagold.Posterior(likelihood, prior, {"x": X, "year": year, "y": y}, init=init)


# Gaussian processes and a mixture


def _covariance(rho, alpha):
    apart = single(data.PLACES[:, None] - data.PLACES[None, :])
    return alpha**2 * jnp.exp(-0.5 * (apart / rho) ** 2)


def gp_regr(y):
    rho, alpha = _gp_scales()
    sigma = numpyro.sample("sigma", dist.HalfNormal(1.0))
    cov = _covariance(rho, alpha) + sigma * jnp.eye(11)
    numpyro.sample("y", dist.MultivariateNormal(0.0, covariance_matrix=cov), obs=y)


def _gp_scales():
    return numpyro.sample("rho", dist.Gamma(25.0, 4.0)), numpyro.sample(
        "alpha", dist.HalfNormal(2.0)
    )


def _log_scales(at):
    rho = 25.0 * at["log_rho"] - 4.0 * jnp.exp(at["log_rho"])
    return rho + half_normal(at["log_alpha"], 2.0)


def _gp_regr_by_hand():
    def log_density(at):
        cov = _covariance(jnp.exp(at["log_rho"]), jnp.exp(at["log_alpha"]))
        root = jnp.linalg.cholesky(cov + jnp.exp(at["log_sigma"]) * jnp.eye(11))
        left = jax.scipy.linalg.solve_triangular(root, single(data.CURVE), lower=True)
        fit = -0.5 * left @ left - jnp.sum(jnp.log(jnp.diag(root)))
        return fit + _log_scales(at) + half_normal(at["log_sigma"], 1.0)

    start = {"log_rho": 1.8, "log_alpha": 0.5, "log_sigma": 0.3}
    return amagold.Density(log_density, init=jax.tree.map(np.float32, start))


def gp_pois_regr(k):
    rho, alpha = _gp_scales()
    raw = numpyro.sample("f_tilde", dist.Normal(0.0, 1.0).expand([11]).to_event(1))
    f = numpyro.deterministic("f", _gp_root(rho, alpha) @ raw)
    numpyro.sample("k", dist.Poisson(jnp.exp(f)), obs=k)


def _gp_root(rho, alpha):
    """The ridge is as small as float32 bears; posteriordb's is 1e-10."""
    return alpha * jnp.linalg.cholesky(_covariance(rho, 1.0) + 1e-5 * jnp.eye(11))


def _gp_pois_by_hand():
    def log_density(at):
        f = _gp_root(jnp.exp(at["log_rho"]), jnp.exp(at["log_alpha"])) @ at["f_tilde"]
        fit = jnp.sum(single(data.COUNTS) * f - jnp.exp(f))
        return fit + _log_scales(at) - 0.5 * jnp.sum(at["f_tilde"] ** 2)

    start = {"log_rho": 1.8, "log_alpha": 1.0, "f_tilde": np.zeros(11)}
    return amagold.Density(log_density, init=jax.tree.map(np.float32, start))


def _named_gp(draws):
    found = {name[4:]: np.exp(x) for name, x in draws.items() if name.startswith("log_")}
    if "f_tilde" in draws:
        apart = data.PLACES[:, None] - data.PLACES[None, :]
        cov = np.exp(-0.5 * (apart / found["rho"][..., None, None]) ** 2) + 1e-5 * np.eye(11)
        root = np.linalg.cholesky(cov)
        scaled = found["alpha"][..., None] * draws["f_tilde"]
        found["f"] = np.einsum("...ij,...j->...i", root, scaled)
    return found


def mixture(y):
    mu = numpyro.sample("mu", dist.ImproperUniform(constraints.ordered_vector, (), (2,)))
    numpyro.factor("mu_prior", -0.5 * jnp.sum((mu / 2.0) ** 2))
    with numpyro.plate("parts", 2):
        sigma = numpyro.sample("sigma", dist.HalfNormal(2.0))
    theta = numpyro.sample("theta", dist.Beta(5.0, 5.0))
    with numpyro.plate("data", y.shape[0]):
        one, other = (dist.Normal(mu[k], sigma[k]).log_prob(y) for k in (0, 1))
        numpyro.factor("y", jnp.logaddexp(jnp.log(theta) + one, jnp.log1p(-theta) + other))


def _mixture_by_hand():
    def likelihood(at, row):
        mu = jnp.stack([at["low"], at["low"] + jnp.exp(at["log_apart"])])
        one, other = (normal(row["y"], mu[k], at["log_sigma"][k]) for k in (0, 1))
        log_theta, log_rest = jax.nn.log_sigmoid(at["z"]), jax.nn.log_sigmoid(-at["z"])
        return jnp.logaddexp(log_theta + one, log_rest + other)

    def prior(at):
        mu = jnp.stack([at["low"], at["low"] + jnp.exp(at["log_apart"])])
        share = 5.0 * (jax.nn.log_sigmoid(at["z"]) + jax.nn.log_sigmoid(-at["z"]))
        return (
            -0.5 * jnp.sum((mu / 2.0) ** 2)
            + at["log_apart"]
            + share
            + half_normal(at["log_sigma"], 2.0).sum()
        )

    start = {"low": -2.0, "log_apart": 1.0, "log_sigma": np.zeros(2), "z": 0.0}
    init = jax.tree.map(np.float32, start)
    return amagold.Posterior(likelihood, prior, {"y": single(data.mixture())}, init=init)


def _named_mixture(draws):
    high = draws["low"] + np.exp(draws["log_apart"])
    return {
        "mu": np.stack([draws["low"], high], axis=-1),
        "sigma": np.exp(draws["log_sigma"]),
        "theta": share(draws["z"]),
    }


POSTERIORS = [
    Published(
        "eight_schools_centered",
        partial(schools, True),
        SCHOOLS,
        applied_groups.centred,
        "school",
        _named_schools,
        "eight_schools",
        "a funnel",
    ),
    Published(
        "eight_schools_noncentered",
        partial(schools, False),
        SCHOOLS,
        applied_groups.apart,
        None,  # theta is of rows
        _named_schools,
        "eight_schools",
    ),
    Published("gp_regr", gp_regr, (single(data.CURVE),), _gp_regr_by_hand, None, _named_gp),
    Published(
        "gp_pois_regr", gp_pois_regr, (single(data.COUNTS),), _gp_pois_by_hand, None, _named_gp
    ),
    Published(
        "GLMM_Poisson", falcons, _falcons(), _falcons_by_hand, named=with_sigma, hard="a funnel"
    ),
    Published(
        "radon_partially_pooled_centered",
        radon_partially_pooled,
        radon_columns("floor", "county", "log_radon"),
        applied_groups.radon_centred,
        named=_named_counties,
    ),
    Published(
        "low_dim_gauss_mix, simulated",
        mixture,
        (single(data.mixture()),),
        _mixture_by_hand,
        named=_named_mixture,
    ),
]
