"""Tables at the edge: separable classes, levels of one row, heavy-tailed columns. The draws are
NUTS's, within the Monte Carlo error of both, and what only the prior holds is said. Two events in 2
x 10^5 rows, which hardly any minibatch meets, are those of quadrature.
"""

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")
numpyro = pytest.importorskip("numpyro")

from false_alarms import PLANTED, threshold, worst  # noqa: E402
from scipy import optimize  # noqa: E402

import amagold  # noqa: E402
from amagold import priors  # noqa: E402

GRID, ENDS = 61, (-15.0, 10.0)  # points along each axis, and where it ends: two events are skewed
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


def moments_by_quadrature(frame, centers, widths):
    """Means and mean squares of intercept and slope, on a grid about the mode."""
    x, ones = frame.x.to_numpy(), frame.x.to_numpy()[frame.y.to_numpy() == 1]

    def energy(at):
        values = np.logaddexp(0.0, at[0] + at[1] * x).sum() - (at[0] + at[1] * ones).sum()
        return values + 0.5 * np.sum(((at - centers) / widths) ** 2)

    mode = optimize.minimize(energy, [-10.0, 0.0], method="BFGS").x
    rows = np.stack([np.ones(len(x)), x])
    rate = 1.0 / (1.0 + np.exp(-mode @ rows))
    precision = (rows * rate * (1.0 - rate)) @ rows.T + np.diag(widths**-2.0)
    root = np.linalg.cholesky(np.linalg.inv(precision))
    steps = np.linspace(*ENDS, GRID)
    places = mode + np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2) @ root.T
    energies = np.array([energy(place) for place in places])
    weights = np.exp(energies.min() - energies)
    ends = (
        weights.reshape(GRID, GRID)[[0, -1]].max() + weights.reshape(GRID, GRID)[:, [0, -1]].max()
    )
    assert ends < 1e-6  # the grid holds all of it
    return np.average(np.concatenate([places, places**2], axis=1), axis=0, weights=weights)


def worst_moment(draws, expected):
    features = np.concatenate([draws, draws**2], axis=-1)
    means = features.reshape(-1, features.shape[1] // BATCHES, features.shape[2]).mean(axis=1)
    return worst(means, expected)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_rare_events_are_those_of_quadrature_and_said():
    """Plans expect the noise of events that no part of the rows has shown them."""
    frame, formula, _ = rare_events()
    own = {"Intercept": priors.normal(-12, 2), "x": priors.normal(0, 1)}
    run = amagold.fit(formula, frame, priors=own, num_samples=1000, progress=False)
    assert "Rare outcome: 2 of 200,000 rows" in " ".join(run.warnings)
    assert float(run.summary()["r_hat"].max()) < 1.05
    draws = np.stack([run.posterior[name].values for name in ("Intercept", "x")], axis=-1)
    expected = moments_by_quadrature(frame, np.array([-12.0, 0.0]), np.array([2.0, 1.0]))
    print(f"rare events: {worst_moment(draws, expected):.2f} of what is allowed")
    assert worst_moment(draws, expected) < 1.0
    assert worst_moment(draws + 0.5 * draws.std(axis=(0, 1)), expected) > PLANTED
