"""Models where JAX keeps 64 bits, as users of other libraries set it for their whole process."""

import jax
import numpy as np
import pytest

import amagold
from amagold import models

ROWS = 2_000


def outcomes(family, z, generator):
    if family in ("poisson", "negative_binomial"):
        return generator.poisson(np.exp(z))
    if family == "gamma":
        return np.exp(z) * generator.gamma(3.0, 1.0 / 3.0, ROWS)
    if family in ("linear", "robust"):
        return z + generator.normal(size=ROWS)
    if family in ("softmax", "ordinal"):
        return generator.integers(0, 3, ROWS)
    return generator.random(ROWS) < 1.0 / (1.0 + np.exp(-z))


def target_of(family):
    generator = np.random.default_rng(0)
    X = generator.normal(size=(ROWS, 2))
    z = X @ np.array([0.5, -0.3])
    if not family.startswith("mixed "):
        return getattr(models, family)(X, outcomes(family, z, generator))
    family, levels = family.removeprefix("mixed "), np.arange(ROWS) % 30
    z = z + generator.normal(size=30)[levels]
    groups = {"1|g": levels, "1|h": np.arange(ROWS) // 200}
    return models.mixed(X, outcomes(family, z, generator), groups, family)


FAMILIES = (
    *("linear", "robust", "poisson", "negative_binomial", "gamma", "probit", "softmax", "ordinal"),
    *(f"mixed {family}" for family in ("logistic", "poisson", "linear")),
)


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")  # there are few draws
@pytest.mark.parametrize(
    "family", ["logistic", *(pytest.param(each, marks=pytest.mark.slow) for each in FAMILIES)]
)
def test_draws_come_with_sixty_four_bits(family, unchecked):
    with jax.enable_x64(True):
        run = amagold.sample(target_of(family), 200, 200, 2, progress=False)
    assert all(np.isfinite(values).all() for values in run.posterior.values())
    if family in ("logistic", "poisson", "linear", "mixed logistic"):
        name = "coefficients" if family == "linear" else "theta"
        found = run.posterior[name].mean(("chain", "draw")).to_numpy()
        # the intercept first; slopes that were put in
        np.testing.assert_allclose(found[1:], [0.5, -0.3], atol=0.25)
