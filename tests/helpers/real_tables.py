"""Real tables as posteriors: as this library writes them, and as a NumPyro model that shares
nothing with it.
"""

import gzip
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import jax
import numpy as np

import amagold
from amagold import datasets, models

NUM_CHAINS, NUM_WARMUP = 8, 1_000
NUM_DRAWS = {"heart": 16_000, "australian": 4_000, "magic": 2_000, "contraceptive": 4_000}
NUM_CLASSES = 3  # of the one table that has more than two


class Table(NamedTuple):
    X: np.ndarray
    y: np.ndarray


@lru_cache
def table(name: str) -> Table:
    """Standardised predictors, and outcomes numbered from 0."""
    if name in ("heart", "australian"):
        found = getattr(datasets, name)()
        return Table(found.X, found.y)
    _, *rows = (
        gzip.decompress((Path(__file__).parent.parent / "tables" / f"{name}.csv.gz").read_bytes())
        .decode()
        .split()
    )
    values = np.array([[float(cell) for cell in row.split(",")] for row in rows])
    predictors = values[:, :-1]
    return Table(
        ((predictors - predictors.mean(axis=0)) / predictors.std(axis=0)).astype(np.float32),
        values[:, -1].astype(int),
    )


def posterior(name: str, prior_scale: float = 1.0) -> amagold.Posterior:
    model = models.softmax if name == "contraceptive" else models.logistic
    return model(*table(name), prior_scale=prior_scale)


@lru_cache
def nuts(name: str) -> np.ndarray:
    """A long run of NumPyro's NUTS with a dense mass that it adapts itself, with axes (chain, draw,
    coordinate).
    """
    import numpyro
    from numpyro import distributions
    from numpyro.infer import MCMC, NUTS

    X, y = table(name)
    rows = np.column_stack([np.ones(len(X), np.float32), X])
    several = name == "contraceptive"
    shape = (rows.shape[1], NUM_CLASSES) if several else rows.shape[1:]
    likelihood = distributions.CategoricalLogits if several else distributions.BernoulliLogits

    def model() -> None:
        coefficients = numpyro.sample(
            "coefficients", distributions.Normal(0.0, 1.0).expand(shape).to_event(len(shape))
        )
        numpyro.sample("y", likelihood(rows @ coefficients), obs=y)

    run = MCMC(
        NUTS(model, dense_mass=True),
        num_warmup=NUM_WARMUP,
        num_samples=NUM_DRAWS[name],
        num_chains=NUM_CHAINS,
        chain_method="vectorized",
        progress_bar=False,
    )
    run.run(jax.random.PRNGKey(0))
    return np.asarray(run.get_samples(group_by_chain=True)["coefficients"]).reshape(
        NUM_CHAINS, NUM_DRAWS[name], -1
    )
