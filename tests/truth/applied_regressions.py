"""Regressions, with raw units and flat priors where the originals have them."""

import jax
import jax.numpy as jnp
import numpy as np
import tables
from applied import Applied, half_cauchy, half_normal, normal, numbers, single

import amagold


def _line(position, example):
    return normal(example["y"], jnp.dot(example["x"], position["beta"]), position["log_sigma"])


def _cauchy_noise(position):
    return half_cauchy(position["log_sigma"], 2.5)


def _flat_noise(position):
    return position["log_sigma"]


def _ten(position):
    return -0.5 * jnp.sum((position["beta"] / 10.0) ** 2) + half_normal(position["log_sigma"], 10.0)


def _wide_first(position):
    """Intercept Student-t(3, 8, 10), slopes N(0, 1), noise half Student-t(3, 0, 10), as a default
    of brms.
    """
    first, rest = position["beta"][0], position["beta"][1:]
    noise = jnp.exp(position["log_sigma"])
    return (
        -2.0 * jnp.log1p(((first - 8.0) / 10.0) ** 2 / 3.0)
        - 0.5 * jnp.sum(rest**2)
        - 2.0 * jnp.log1p((noise / 10.0) ** 2 / 3.0)
        + jnp.log(noise)
    )


def linear(name, columns, y, prior, note="", looked_at=None):
    """y ~ N(X beta, sigma^2) with log sigma as a parameter, starting where a user starts:
    at zero.
    """
    X = np.column_stack([np.ones(len(y)), *columns])

    def target():
        init = {"beta": np.zeros(X.shape[1], np.float32), "log_sigma": np.float32(0.0)}
        return amagold.Posterior(_line, prior, {"x": single(X), "y": single(y)}, init=init)

    return Applied(name, target, numbers(beta=looked_at or X.shape[1], log_sigma=0), note)


def kids(name, *columns):
    table = tables.kids()
    table = table | {"interaction": table["school"] * table["iq"]}
    return linear(
        f"kidscore_{name}",
        [table[column] for column in columns],
        table["score"],
        _cauchy_noise,
        tables.SIMULATED,
    )


def earn_height():
    table = tables.earnings()
    return linear(
        "earn_height", [table["height"]], table["earnings"], _flat_noise, tables.SIMULATED
    )


BUSH = ("diameter1", "diameter2", "canopy_height", "total_height", "density", "group")


def mesquite():
    table = tables.mesquite()
    return linear(
        "mesquite", [table[name] for name in BUSH], table["weight"], _flat_noise, tables.SIMULATED
    )


def log_mesquite():
    table = tables.mesquite()
    columns = [table[name] if name == "group" else np.log(table[name]) for name in BUSH]
    return linear("logmesquite", columns, np.log(table["weight"]), _flat_noise, tables.SIMULATED)


def sblri():
    table = tables.five_predictors()
    found = linear("sblri", list(table["X"].T), table["y"], _ten, tables.SIMULATED)
    return found


def contrasts(levels):
    """Orthogonal polynomials of an ordered factor, as R makes them."""
    count = int(levels.max()) + 1
    powers = np.vander(np.arange(count) - (count - 1) / 2.0, increasing=True)
    return np.linalg.qr(powers)[0][levels.astype(int), 1:]


def diamonds():
    table = tables.read("diamonds")
    carat, clarity = np.log(table["carat"]), contrasts(table["clarity"])
    columns = [
        carat,
        *contrasts(table["cut"]).T,
        *contrasts(table["color"]).T,
        *clarity.T,
        *(clarity * carat[:, None]).T,
    ]
    return linear("diamonds, 5,000 x 26", columns, np.log(table["price"]), _wide_first, looked_at=8)


def _logit(beta, example):
    return example["y"] * jnp.dot(example["x"], beta) - jax.nn.softplus(jnp.dot(example["x"], beta))


def _flat(beta):
    return jnp.float32(0.0) * beta[0]


def _five(beta):
    return -0.5 * jnp.sum((beta / 5.0) ** 2)


def _hundred(beta):
    return -0.5 * jnp.sum((beta / 100.0) ** 2)


def logit(name, columns, y, prior, note=""):
    X = np.column_stack([np.ones(len(y)), *columns])

    def target():
        return amagold.Posterior(
            _logit, prior, {"x": single(X), "y": single(y)}, init=np.zeros(X.shape[1], np.float32)
        )

    return Applied(name, target, numbers(theta=X.shape[1]), note)


def nes():
    table = tables.votes()
    return logit("nes_logit", [table["income"]], table["vote"], _flat, tables.SIMULATED)


def wells():
    table = tables.read("wells")
    return logit("wells_dist", [table["distance"]], table["switch"], _flat)


def wells_all():
    table = tables.read("wells")
    columns = [table["distance"] / 100.0, table["arsenic"], table["education"] / 4.0]
    columns.append(columns[0] * columns[1])
    return logit("wells_dae_inter", columns, table["switch"], _five)


def dogs():
    table = tables.dogs()
    return logit(
        "dogs", [table["avoided"], table["shocked"]], table["shock"], _hundred, tables.SIMULATED
    )


def _poisson(beta, example):
    z = jnp.dot(example["x"], beta)
    return example["y"] * z - jnp.exp(z)


def glm_poisson():
    table = tables.peregrines()
    X = np.column_stack([table["year"] ** power for power in range(4)])

    def target():
        return amagold.Posterior(
            _poisson,
            _hundred,
            {"x": single(X), "y": single(table["count"])},
            init=np.zeros(4, np.float32),
        )

    return Applied("GLM_Poisson", target, numbers(theta=4), tables.SIMULATED)


def _negative_binomial(position, example):
    z, size = jnp.dot(example["x"], position["beta"]), jnp.exp(position["log_size"])
    y = example["y"]
    start = jax.lax.lgamma(y + size) - jax.lax.lgamma(size)
    return (
        start
        + y * z
        + size * position["log_size"]
        - (y + size) * jnp.logaddexp(z, position["log_size"])
    )


def _negative_binomial_prior(position):
    # log size ~ N(0, 2^2)
    return -0.5 * jnp.sum((position["beta"] / 5.0) ** 2) - 0.5 * (position["log_size"] / 2.0) ** 2


def negative_binomial():
    """Days of absence of 146 pupils in rural New South Wales."""
    table = tables.read("quine")
    ages = [table["age"] == level for level in (1, 2, 3)]
    X = np.column_stack([np.ones(146), table["eth"], table["sex"], table["learner"], *ages])

    def target():
        init = {"beta": np.zeros(7, np.float32), "log_size": np.float32(0.0)}
        data = {"x": single(X), "y": single(table["days"])}
        return amagold.Posterior(_negative_binomial, _negative_binomial_prior, data, init=init)

    return Applied("negative binomial, absent days", target, numbers(beta=7, log_size=0))


ROWS = [
    earn_height(),
    kids("momiq", "iq"),
    kids("momhs", "school"),
    kids("momhsiq", "school", "iq"),
    kids("interaction", "school", "iq", "interaction"),
    mesquite(),
    log_mesquite(),
    sblri(),
    diamonds(),
    nes(),
    wells(),
    wells_all(),
    dogs(),
    glm_poisson(),
    negative_binomial(),
]
