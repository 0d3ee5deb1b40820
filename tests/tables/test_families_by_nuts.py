"""Draws of every family, with weights and offsets, against NUTS on densities by jax.scipy."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from false_alarms import PLANTED
from jax.scipy import stats
from jax.scipy.special import log_ndtr, logit
from monte_carlo_errors import apart

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")
numpyro_infer = pytest.importorskip("numpyro.infer")

import amagold  # noqa: E402

pytestmark = pytest.mark.slow

NUM_ROWS = 150
GENERATOR = np.random.default_rng(9)
DOSE, GROUP = GENERATOR.normal(size=NUM_ROWS), GENERATOR.integers(0, 2, NUM_ROWS)
TIMES, OFFSET = GENERATOR.integers(0, 3, NUM_ROWS), 0.5 * GENERATOR.normal(size=NUM_ROWS)
ETA = 0.2 + 0.6 * DOSE - 0.4 * GROUP + OFFSET
CHANCE = 1.0 / (1.0 + np.exp(-ETA))
TABLE = pandas.DataFrame(
    {
        "dose": DOSE,
        "group": GROUP.astype(str),
        "times": TIMES,
        "offset": OFFSET,
        "trials": 5,
        "one": (GENERATOR.random(NUM_ROWS) < CHANCE).astype(int),
        "several": GENERATOR.binomial(5, CHANCE),
        "count": GENERATOR.poisson(np.exp(ETA)),
        "spread": GENERATOR.poisson(np.exp(ETA) * GENERATOR.gamma(2.0, 0.5, NUM_ROWS)),
        "positive": np.exp(ETA) * GENERATOR.gamma(3.0, 1.0 / 3.0, NUM_ROWS),
        "number": ETA + 0.7 * GENERATOR.standard_t(4, NUM_ROWS),
        "grade": np.digitize(ETA + GENERATOR.logistic(size=NUM_ROWS), [-0.5, 1.0]),
    }
)


def _middle(values):
    """Median and 1.4826 median absolute deviations of the rows written out."""
    written = np.repeat(values - OFFSET, TIMES)
    center = np.median(written)
    return center, 1.4826 * np.median(np.abs(written - center))


def _grades(y, z, gaps):
    cutpoints = jnp.array([0.0, 1.0]) * jnp.exp(gaps)
    up_to = jax.nn.sigmoid(cutpoints - z[:, None])
    share = jnp.stack([up_to[:, 0], up_to[:, 1] - up_to[:, 0], 1.0 - up_to[:, 1]], axis=1)
    return jnp.log(share[jnp.arange(len(z)), y.astype(int)])


Y = {name: jnp.asarray(TABLE[name].to_numpy(), jnp.float32) for name in TABLE if name != "group"}
WRITTEN = {name: np.repeat(TABLE[name].to_numpy(), TIMES) for name in ("number", "positive")}
# family and column; log p(y | z, k); where the prior of k lies and how wide it is, None without k
FAMILIES = {
    "logistic": ("one", lambda y, z, k: stats.bernoulli.logpmf(y, jax.nn.sigmoid(z)), None),
    "binomial": (
        "several",
        lambda y, z, k: y * jax.nn.log_sigmoid(z) + (5.0 - y) * jax.nn.log_sigmoid(-z),
        None,
    ),
    "probit": ("one", lambda y, z, k: log_ndtr(jnp.where(y > 0, z, -z)), None),
    "poisson": ("count", lambda y, z, k: stats.poisson.logpmf(y, jnp.exp(z)), None),
    "negative_binomial": (
        "spread",
        lambda y, z, k: stats.nbinom.logpmf(y, jnp.exp(k), 1.0 / (1.0 + jnp.exp(z - k))),
        (0.0, 2.0),
    ),
    "gamma": (
        "positive",
        lambda y, z, k: stats.gamma.logpdf(y, jnp.exp(k), scale=jnp.exp(z - k)),
        (2.0 * np.log(WRITTEN["positive"].mean() / WRITTEN["positive"].std()), 2.0),
    ),
    "linear": (
        "number",
        lambda y, z, k: stats.norm.logpdf(y, z, jnp.exp(k)),
        (np.log((WRITTEN["number"] - np.repeat(OFFSET, TIMES)).std()), 2.0),
    ),
    "robust": (
        "number",
        lambda y, z, k: stats.t.logpdf(y, 4.0, z, jnp.exp(k)),
        (np.log(_middle(TABLE["number"].to_numpy())[1]), 2.0),
    ),
    "ordinal": ("grade", _grades, "gaps"),
}


def _prior_of(where):
    if where != "gaps":
        return where
    shares = [np.average(TABLE["grade"] <= level, weights=TIMES) for level in (0, 1)]
    return float(jnp.log(logit(shares[1]) - logit(shares[0]))), 1.0


def by_nuts(name):
    """Draws of (intercept, dose, group, k) with axes (chain, draw, parameter)."""
    column, log_likelihood, where = FAMILIES[name]
    y, where = Y[column], _prior_of(where)
    rows = jnp.asarray(np.column_stack([np.ones(NUM_ROWS), DOSE, GROUP]), jnp.float32)
    width = 3 + (where is not None)

    def energy(at):
        z = rows @ at[:3] + jnp.asarray(OFFSET, jnp.float32)
        values = log_likelihood(y, z, at[3] if where is not None else None)
        prior = -0.5 * jnp.sum(at[:3] ** 2)
        if where is not None:
            prior -= 0.5 * ((at[3] - where[0]) / where[1]) ** 2
        return -prior - jnp.sum(jnp.asarray(TIMES, jnp.float32) * values)

    kernel = numpyro_infer.NUTS(potential_fn=energy)
    chains = numpyro_infer.MCMC(
        kernel,
        num_warmup=500,
        num_samples=3000,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    chains.run(jax.random.key(1), init_params=jnp.zeros((4, width)))
    return np.asarray(chains.get_samples(group_by_chain=True), np.float64)


def by_fit(name, weights="times"):
    family = "logistic" if name == "binomial" else name
    column, _, where = FAMILIES[name]
    posterior = amagold.fit(
        f"{column} ~ dose + group",
        TABLE,
        family,
        prior_scale=1.0,
        weights=weights,
        offset="offset",
        trials="trials" if name == "binomial" else None,
        num_samples=3000,
        num_warmup=500,
        progress=False,
    ).posterior
    group = posterior["group"].values.reshape(*posterior["dose"].shape)
    columns = [posterior["dose"].values, group]
    if name == "ordinal":
        threshold = posterior["threshold"].values
        gaps = np.log(threshold[..., 1] - threshold[..., 0])
        return np.stack([-threshold[..., 0], *columns, gaps], axis=-1)
    columns = [posterior["Intercept"].values, *columns]
    if where is not None:
        scale = posterior["sigma" if "sigma" in posterior else "alpha"].values
        columns.append(np.log(scale))
    return np.stack(columns, axis=-1)


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
@pytest.mark.parametrize("name", FAMILIES)
def test_draws_are_those_of_nuts(name):
    assert apart(by_fit(name), by_nuts(name)) < 1.0


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_forgotten_weights_would_be_seen():
    assert apart(by_fit("poisson", weights=None), by_nuts("poisson")) > PLANTED
