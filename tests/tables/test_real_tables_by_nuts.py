"""Draws for parts of real tables, with weights and offsets, against NUTS on densities by hand."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from false_alarms import PLANTED
from jax.scipy import stats
from jax.scipy.special import logit

pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")
numpyro_infer = pytest.importorskip("numpyro.infer")

from large_tables import dummies, real_table  # noqa: E402
from monte_carlo_errors import apart  # noqa: E402
from table_modes import terms_of  # noqa: E402

import amagold  # noqa: E402

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")]

NUM_CLASSES = 5  # of cuts and of marks


def marks_by_hand(y, z, gaps):
    """log P(y = k) = log(F(c_k - z) - F(c_{k-1} - z)), with gaps between cutpoints as logs."""
    cutpoints = jnp.concatenate([jnp.zeros(1), jnp.cumsum(jnp.exp(gaps))])
    up_to = jax.nn.sigmoid(cutpoints - z[:, None])
    ends = jnp.ones((len(z), 1))
    shares = jnp.diff(jnp.concatenate([0.0 * ends, up_to, ends], axis=1), axis=1)
    return jnp.log(shares[jnp.arange(len(z)), y.astype(int)])


def log_deviation(y, offset, times):
    written = np.repeat(y - offset, times)
    return np.log(1.4826 * np.median(np.abs(written - np.median(written))))


def log_gaps(y, offset, times):
    shares = np.array([np.average(y <= level, weights=times) for level in range(NUM_CLASSES - 1)])
    return np.log(np.diff(np.asarray(logit(shares))))


# formula, table and every which row; log p(y | z, k); where the prior of k lies, and how wide it is
CASES = {
    "logistic": (
        ("late ~ distance + C(month) + origin", "nycflights13/flights", 200),
        lambda y, z, k: stats.bernoulli.logpmf(y, jax.nn.sigmoid(z)),
        None,
    ),
    "robust": (
        ("dep_delay ~ distance + origin", "nycflights13/flights", 400),
        lambda y, z, k: stats.t.logpdf(y, 4.0, z, jnp.exp(k[0])),
        (log_deviation, 2.0),
    ),
    "negative_binomial": (
        ("births ~ C(month) + wday", "mosaicData/Birthdays", 400),
        lambda y, z, k: stats.nbinom.logpmf(y, jnp.exp(k[0]), 1.0 / (1.0 + jnp.exp(z - k[0]))),
        (lambda y, offset, times: 0.0, 2.0),
    ),
    "ordinal": (
        ("y ~ C(studage) + service", "lme4/InstEval", 60),
        marks_by_hand,
        (log_gaps, 1.0),
    ),
    "softmax": (
        ("cut ~ carat + color", "ggplot2/diamonds", 60),
        lambda y, z, k: jax.nn.log_softmax(z)[jnp.arange(len(y)), y.astype(int)],
        None,
    ),
}


def part_of(name):
    (formula, source, every), *_ = CASES[name]
    frame = real_table(source, every)
    outcome = frame[formula.split("~")[0].strip()]
    if name in ("softmax", "ordinal"):
        outcome = outcome.astype("category").cat.codes
    return formula, frame, outcome.to_numpy(np.float64)


def by_nuts(name):
    """Draws of coefficients and k, with axes (chain, draw, parameter)."""
    formula, frame, y = part_of(name)
    _, log_likelihood, of_k = CASES[name]
    X, times = dummies(formula, frame), frame.times.to_numpy()
    offset = np.zeros(len(y)) if name == "softmax" else frame["shift"].to_numpy()
    shape = (X.shape[1], NUM_CLASSES) if name == "softmax" else (X.shape[1],)
    size = int(np.prod(shape))
    where = np.zeros(0) if of_k is None else np.atleast_1d(of_k[0](y, offset, times))
    rows, observed = jnp.asarray(X, jnp.float32), jnp.asarray(y, jnp.float32)
    center, width = jnp.asarray(where, jnp.float32), 1.0 if of_k is None else of_k[1]

    def energy(at):
        z = rows @ at[:size].reshape(shape)
        z = z if name == "softmax" else z + jnp.asarray(offset, jnp.float32)
        values = log_likelihood(observed, z, at[size:])
        prior = -0.5 * jnp.sum(at[:size] ** 2) - 0.5 * jnp.sum(((at[size:] - center) / width) ** 2)
        return -prior - jnp.sum(jnp.asarray(times, jnp.float32) * values)

    chains = numpyro_infer.MCMC(
        numpyro_infer.NUTS(potential_fn=energy, dense_mass=True),
        num_warmup=600,
        num_samples=2000,
        num_chains=4,
        chain_method="vectorized",
        progress_bar=False,
    )
    start = jnp.concatenate([jnp.zeros(size), center])
    chains.run(jax.random.key(1), init_params=jnp.tile(start, (4, 1)))
    return np.asarray(chains.get_samples(group_by_chain=True), np.float64)


def by_fit(name, weights="times"):
    formula, frame, _ = part_of(name)
    posterior = amagold.fit(
        formula,
        frame,
        name,
        prior_scale=1.0,
        weights=weights,
        offset=None if name == "softmax" else "shift",
        num_samples=2000,
        progress=False,
    ).posterior
    terms = terms_of(formula)
    columns = [posterior[term].values for term in terms if term in posterior]
    if name == "ordinal":
        thresholds = posterior["threshold"].values
        columns = [-thresholds[..., :1], *columns, np.log(np.diff(thresholds, axis=-1))]
    columns += [
        np.log(posterior[scale].values) for scale in ("sigma", "alpha") if scale in posterior
    ]
    return np.concatenate([each.reshape(*each.shape[:2], -1) for each in columns], axis=-1)


@pytest.mark.parametrize("name", CASES)
def test_draws_are_those_of_nuts(name):
    ours, theirs = by_fit(name), by_nuts(name)
    print(f"{name}: {ours.shape[-1]} parameters, {apart(ours, theirs):.2f} of what is allowed")
    assert apart(ours, theirs) < 1.0
    # draws that are off by a fifth of a standard deviation would be seen
    assert apart(ours + 0.2 * ours.std(axis=(0, 1)), theirs) > PLANTED


def test_forgotten_weights_would_be_seen():
    assert apart(by_fit("negative_binomial", weights=None), by_nuts("negative_binomial")) > PLANTED
