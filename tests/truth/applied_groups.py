"""Hierarchies, centred and not."""

from functools import partial

import jax.numpy as jnp
import numpy as np
import tables
from applied import Applied, half_cauchy, half_normal, normal, numbers, single

import amagold

EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])


def _school_data():
    return {"effect": single(EFFECTS), "error": single(ERRORS), "school": np.arange(8)}


def _centred_school(position, example):
    return (
        -0.5 * ((example["effect"] - position["theta"][example["school"]]) / example["error"]) ** 2
    )


def _centred_schools_prior(position):
    groups = normal(position["theta"], position["mu"], position["log_tau"]).sum()
    return groups - 0.5 * (position["mu"] / 5.0) ** 2 + half_cauchy(position["log_tau"], 5.0)


def _school(position, example):
    mean = position["mu"] + jnp.exp(position["log_tau"]) * position["eta"][example["school"]]
    return -0.5 * ((example["effect"] - mean) / example["error"]) ** 2


def _schools_prior(position):
    return (
        -0.5 * jnp.sum(position["eta"] ** 2)
        - 0.5 * (position["mu"] / 5.0) ** 2
        + half_cauchy(position["log_tau"], 5.0)
    )


def _schools(likelihood, prior, groups):
    init = {"mu": np.float32(0.0), "log_tau": np.float32(0.0), groups: np.zeros(8, np.float32)}
    return amagold.Posterior(likelihood, prior, _school_data(), init=init)


def _to_groups(draws):
    return draws | {
        "theta": draws["mu"][..., None] + np.exp(draws["log_tau"])[..., None] * draws["eta"]
    }


apart = partial(_schools, _school, _schools_prior, "eta")
centred = partial(_schools, _centred_school, _centred_schools_prior, "theta")


# radon in the houses of 85 counties


def _radon_data():
    table = tables.read("radon")
    return {
        "y": single(table["log_radon"]),
        "floor": single(table["floor"]),
        "county": table["county"].astype(np.int32),
    }


def _centred_house(position, example):
    mean = position["alpha"][example["county"]] + position["beta"] * example["floor"]
    return normal(example["y"], mean, position["log_sigma"])


def _tops(position):
    scales = half_normal(position["log_sigma"], 1.0) + half_normal(position["log_tau"], 1.0)
    return scales - 0.5 * (position["mu"] / 10.0) ** 2 - 0.5 * (position["beta"] / 10.0) ** 2


def _centred_radon_prior(position):
    return normal(position["alpha"], position["mu"], position["log_tau"]).sum() + _tops(position)


def _house(position, example):
    mean = position["mu"] + jnp.exp(position["log_tau"]) * position["eta"][example["county"]]
    return normal(example["y"], mean + position["beta"] * example["floor"], position["log_sigma"])


def _radon_prior(position):
    return -0.5 * jnp.sum(position["eta"] ** 2) + _tops(position)


def _radon(likelihood, prior, groups):
    init = {name: np.float32(0.0) for name in ("mu", "beta", "log_tau", "log_sigma")} | {
        groups: np.zeros(85, np.float32)
    }
    return amagold.Posterior(likelihood, prior, _radon_data(), init=init)


def _to_counties(draws):
    return draws | {
        "alpha": draws["mu"][..., None] + np.exp(draws["log_tau"])[..., None] * draws["eta"]
    }


radon_apart = partial(_radon, _house, _radon_prior, "eta")
radon_centred = partial(_radon, _centred_house, _centred_radon_prior, "alpha")

ROWS = [
    Applied(
        "eight_schools_centered",
        centred,
        numbers(mu=0, log_tau=0, theta=2),
        "",
        apart,
        _to_groups,
        True,
    ),
    Applied("eight_schools_noncentered", apart, numbers(mu=0, log_tau=0, eta=2), is_diagonal=True),
    Applied(
        "radon_partially_pooled_centered",
        radon_centred,
        numbers(mu=0, beta=0, log_tau=0, log_sigma=0, alpha=2),
        "",
        radon_apart,
        _to_counties,
        True,
    ),
    Applied(
        "radon_partially_pooled_noncentered",
        radon_apart,
        numbers(mu=0, beta=0, log_tau=0, log_sigma=0, eta=2),
        is_diagonal=True,
    ),
]
