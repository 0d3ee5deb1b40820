"""Tables at the edge: separable classes, levels of one row, heavy-tailed columns. The draws are
NUTS's, within the Monte Carlo error of both, and what only the prior holds is said. So are two
events in 2 x 10^5 rows, which hardly any minibatch meets.
"""

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")
numpyro = pytest.importorskip("numpyro")

from false_alarms import PLANTED, threshold  # noqa: E402

import amagold  # noqa: E402
from amagold import priors  # noqa: E402

BATCHES = 20  # of draws in a row, whose means are nearly independent


def separable():
    x = np.linspace(-2.0, 2.0, 60)
    return pandas.DataFrame({"x": x, "y": (x > 0).astype(int)}), "y ~ x", []


def rare_events():
    generator = np.random.default_rng(0)
    x = generator.normal(size=200_000)
    y = np.zeros(len(x), int)
    y[np.argsort(-x)[[50, 9000]]] = 1
    return pandas.DataFrame({"x": x, "y": y}), "y ~ x", []


def rare_level():
    generator = np.random.default_rng(1)
    level = np.array(["a", "b"])[generator.integers(0, 2, 400)].astype(object)
    level[7] = "once"
    y = generator.integers(0, 2, 400)
    return pandas.DataFrame({"y": y, "level": level}), "y ~ level", ["b", "once"]


def heavy_tails():
    generator = np.random.default_rng(2)
    x = generator.standard_t(1.2, 1000)
    y = generator.random(1000) < 1 / (1 + np.exp(-0.3 * np.sign(x)))
    return pandas.DataFrame({"x": x, "y": y.astype(int)}), "y ~ x", []


TABLES = {
    "separable": (separable, "Separation", "'x' tells apart"),
    "rare level": (rare_level, "Separation", "'level[T.once]' tells apart"),
    "heavy tails": (heavy_tails, None, ""),
    "rare events": (rare_events, "Rare outcome", "2 of 200,000 rows"),
}


def draws_of_nuts(frame, levels, widths, num_draws):
    """(chains, draws, coefficients), the intercept first."""
    import jax
    import jax.numpy as jnp
    from numpyro import distributions, infer

    columns = [frame.level == level for level in levels] if levels else [frame.x]
    X = jnp.asarray(np.stack([np.ones(len(frame)), *columns], axis=1), jnp.float32)
    y = jnp.asarray(frame.y.to_numpy())

    def model():
        theta = numpyro.sample("theta", distributions.Normal(0.0, jnp.asarray(widths)).to_event(1))
        numpyro.sample("y", distributions.Bernoulli(logits=X @ theta), obs=y)

    kernel = infer.NUTS(model, dense_mass=True)
    mcmc = infer.MCMC(
        kernel,
        num_warmup=500,
        num_samples=num_draws,
        num_chains=2,
        chain_method="sequential",
        progress_bar=False,
    )
    mcmc.run(jax.random.key(0))
    return np.asarray(mcmc.get_samples(group_by_chain=True)["theta"], np.float64)


def worst_difference(ours, theirs):
    """Of means and mean squares, as a share of the threshold."""
    found = []
    for each in (ours, theirs):
        features = np.concatenate([each, each**2], axis=-1)
        means = features.reshape(-1, features.shape[1] // BATCHES, features.shape[2]).mean(axis=1)
        found.append((means.mean(axis=0), means.var(axis=0, ddof=1) / len(means)))
    (mean, error), (other, other_error) = found
    apart = np.abs(mean - other) / np.sqrt(error + other_error)
    return float(apart.max() / threshold(len(apart)))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
@pytest.mark.parametrize("name", TABLES)
def test_draws_are_those_of_nuts(name):
    make, doubt, words = TABLES[name]
    frame, formula, levels = make()
    term = "level" if levels else "x"
    run = amagold.fit(
        formula,
        frame,
        priors={"Intercept": priors.normal(0, 10), term: priors.normal(0, 2)},
        num_samples=4000,
        progress=False,
    )
    said = " ".join(run.warnings)
    for kind in ("Separation", "Rare outcome", "Collinear"):
        assert (kind in said) == (kind == doubt)
    assert words in said
    found = run.posterior[term].values
    ours = np.concatenate(
        [run.posterior["Intercept"].values[..., None], found if levels else found[..., None]], -1
    )
    widths = [10.0, *[2.0] * (ours.shape[-1] - 1)]
    theirs = draws_of_nuts(frame, levels, widths, 4000)
    assert worst_difference(ours, theirs) < 1.0
    # draws that are off by a fifth of a standard deviation would be seen
    assert worst_difference(ours + 0.2 * ours.std(axis=(0, 1)), theirs) > PLANTED


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_rare_events_mix_and_are_said():
    """Plans expect the noise of events that no part of the rows has shown them."""
    frame, formula, _ = rare_events()
    run = amagold.fit(formula, frame, num_samples=500, progress=False)
    assert "Rare outcome: 2 of 200,000 rows" in " ".join(run.warnings)
    assert float(run.summary()["r_hat"].max()) < 1.05
