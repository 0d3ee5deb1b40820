"""Posteriors of posteriordb, each as a NumPyro model and by hand, with its published moments.

Means and mean squares with their errors are posteriordb's own (published.json, from
stan-dev/posteriordb, BSD-3), of its reference draws; for those that it has none of, they are those
of long runs of NUTS (published_ours.json, by make_published.py).
"""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpyro import distributions as dist
from numpyro.distributions import constraints
from record import Draws

HERE = Path(__file__).parent
THEIRS, OURS = HERE / "published.json", HERE / "published_ours.json"


class Published(NamedTuple):
    """A posterior, written twice."""

    name: str
    model: Callable[..., None]
    args: tuple[Any, ...]
    by_hand: Callable[[], Any]
    plate: str | None = "data"
    named: Callable[[Draws], Draws] = lambda draws: draws  # of draws by hand, as posteriordb does
    moments: str = ""  # where they are under another name
    hard: str = ""  # why a warning is right


def flat(shape=()):
    support = constraints.real_vector if shape else constraints.real
    return dist.ImproperUniform(support, (), shape)


def flat_above_zero():
    return dist.ImproperUniform(constraints.positive, (), ())


def share(z):
    """Of a logit."""
    return 1.0 / (1.0 + np.exp(-z))


def with_sigma(draws):
    return draws | {"sigma": np.exp(draws["log_sigma"])}


# of those that posteriordb has no reference draws or no readable data of
MADE = {
    "GLMM_Poisson": ["beta[1]", "beta[2]", "beta[3]", "beta[4]", "sigma", "eps[1]"],
    "radon_partially_pooled_centered": ["mu", "beta", "tau", "sigma", "alpha[1]", "alpha[2]"],
    "low_dim_gauss_mix, simulated": ["mu[1]", "mu[2]", "sigma[1]", "sigma[2]", "theta"],
}


class Moments(NamedTuple):
    """E x and E x^2 of one number, with their errors."""

    name: str
    mean: float
    mean_error: float
    square: float
    square_error: float

    def of(self, draws: Draws) -> np.ndarray:
        """Its draws, with axes (chain, draw); Stan counts from one."""
        variable, _, place = self.name.partition("[")
        return draws[variable][..., int(place[:-1]) - 1] if place else draws[variable]


def moments_of(posterior: Published) -> list[Moments]:
    file = OURS if posterior.name in MADE else THEIRS
    found = json.loads(file.read_text())[posterior.moments or posterior.name]
    return [
        Moments(*each)
        for each in zip(
            *(found[key] for key in ("names", "mean", "mean_error", "square", "square_error")),
            strict=True,
        )
    ]
