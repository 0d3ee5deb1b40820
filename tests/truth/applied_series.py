"""Series and curves: densities without independent examples, and one whose examples are lagged."""

import jax
import jax.numpy as jnp
import numpy as np
import tables
from applied import Applied, half_cauchy, half_normal, normal, numbers, single

import amagold

LAGS = 5


def _lagged(position, example):
    mean = position["alpha"] + jnp.dot(position["beta"], example["before"])
    return normal(example["y"], mean, position["log_sigma"])


def _lagged_prior(position):
    coefficients = position["alpha"] ** 2 + jnp.sum(position["beta"] ** 2)
    return -0.5 * coefficients / 100.0 + half_cauchy(position["log_sigma"], 2.5)


def ar_5():
    """Trapped lynx, 1821 to 1934, on the log scale."""

    def target():
        y = np.log(tables.read("lynx")["trapped"])
        before = np.column_stack([y[LAGS - lag : len(y) - lag] for lag in range(1, LAGS + 1)])
        init = {
            "alpha": np.float32(0.0),
            "beta": np.zeros(LAGS, np.float32),
            "log_sigma": np.float32(0.0),
        }
        return amagold.Posterior(
            _lagged, _lagged_prior, {"y": single(y[LAGS:]), "before": single(before)}, init=init
        )

    return Applied("arK, K = 5", target, numbers(alpha=0, beta=LAGS, log_sigma=0))


def garch():
    """Daily changes of the German mark in per cent; both shares on the logit scale, so that they
    sum to less than one.
    """
    y = single(100.0 * tables.read("mark")["change"][:200])

    def log_density(position):
        first = jax.nn.sigmoid(position["logit_alpha"])
        second = jax.nn.sigmoid(position["logit_beta"]) * (1.0 - first)
        floor = jnp.exp(position["log_omega"])

        def day(variance, change):
            residual = change - position["mu"]
            logs = -0.5 * residual**2 / variance - 0.5 * jnp.log(variance)
            return floor + first * residual**2 + second * variance, logs

        start = jnp.asarray(np.var(y), position["mu"].dtype)
        logs = jax.lax.scan(day, start, jnp.asarray(y, position["mu"].dtype))[1].sum()
        # uniform shares: the volume of both logits; a wide normal prior on the floor and the mean
        volume = (
            jnp.log(first)
            + 2.0 * jnp.log1p(-first)
            + sum(map(_log_slope, [position["logit_beta"]]))
        )
        return (
            logs
            + volume
            - 0.5 * (position["mu"] / 10.0) ** 2
            - 0.5 * ((position["log_omega"] + 2.0) / 2.0) ** 2
        )

    names = ("mu", "log_omega", "logit_alpha", "logit_beta")

    def target():
        return amagold.Density(log_density, init={name: np.float32(0.0) for name in names})

    return Applied("garch11", target, numbers(**dict.fromkeys(names, 0)))


def _log_slope(logit):
    return -jax.nn.softplus(logit) - jax.nn.softplus(-logit)


def gaussian_process():
    """The length, the height and the noise of a curve through 11 points, its values
    integrated out.
    """
    table = tables.curve()
    apart, y = single(np.subtract.outer(table["x"], table["x"]) ** 2), single(table["y"])

    def log_density(position):
        length, height, noise = (
            jnp.exp(position[name]) for name in ("log_rho", "log_alpha", "log_sigma")
        )
        covariance = height**2 * jnp.exp(-0.5 * apart / length**2) + (noise**2 + 1e-4) * jnp.eye(
            11, dtype=length.dtype
        )
        factor = jnp.linalg.cholesky(covariance)
        whitened = jax.scipy.linalg.solve_triangular(
            factor, jnp.asarray(y, length.dtype), lower=True
        )
        fit = -0.5 * whitened @ whitened - jnp.log(jnp.diag(factor)).sum()
        # rho ~ Gamma(25, 4), alpha ~ half-normal(2), sigma ~ half-normal(1)
        length_prior = 25.0 * position["log_rho"] - 4.0 * length
        return (
            fit
            + length_prior
            + half_normal(position["log_alpha"], 2.0)
            + half_normal(position["log_sigma"], 1.0)
        )

    names = ("log_rho", "log_alpha", "log_sigma")

    def target():
        return amagold.Density(log_density, init={name: np.float32(0.0) for name in names})

    return Applied("gp_regr", target, numbers(**dict.fromkeys(names, 0)), tables.SIMULATED)


ROWS = [ar_5(), garch(), gaussian_process()]
