"""NumPyro models with effects of groups, in every way that people write them."""

import jax.numpy as jnp
import numpy as np
import numpyro
from numpyro import distributions as dist, handlers
from numpyro.distributions import constraints
from numpyro.infer.reparam import LocScaleReparam
from numpyro_models import BINARY, COUNTS, MASK, NUM_ROWS, NUMBERS, SCHOOLS, WEIGHTS, Case, X

_random = np.random.default_rng(1)
LEVELS, OTHERS = 12, 3
INNER = _random.integers(0, LEVELS, NUM_ROWS)
OUTER_OF = np.arange(LEVELS) % OTHERS
OTHER = _random.integers(0, 5, NUM_ROWS)
LEVEL_X = _random.normal(size=LEVELS).astype(np.float32)


def coefficients():
    mean = numpyro.sample("mean", dist.Normal(0.5, 2.0))
    return mean, numpyro.sample("b", dist.Normal(0.0, 1.0).expand([3]).to_event(1))


def centred(X, group, y):
    mean, b = coefficients()
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("groups", LEVELS):
        effect = numpyro.sample("effect", dist.Normal(mean, spread))
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=effect[group] + X @ b), obs=y)


def non_centred(X, group, y):
    mean, b = coefficients()
    spread = numpyro.sample("spread", dist.HalfCauchy(1.0))
    with numpyro.plate("groups", LEVELS):
        unit = numpyro.sample("unit", dist.Normal(0.0, 1.0))
        effect = numpyro.deterministic("effect", mean + spread * unit)
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Poisson(jnp.exp(effect[group] + X @ b)), obs=y)


reparametrised = handlers.reparam(centred, config={"effect": LocScaleReparam(centered=0)})


def crossed(X, group, other, y):
    mean, b = coefficients()
    one = numpyro.sample("one", dist.Exponential(1.0))
    two = numpyro.sample("two", dist.Uniform(0.0, 3.0))
    with numpyro.plate("groups", LEVELS):
        first = numpyro.sample("first", dist.Normal(0.0, one))
    with numpyro.plate("others", 5):
        second = numpyro.sample("second", dist.Normal(0.0, 1.0)) * two
    with numpyro.plate("data", X.shape[0]):
        z = mean + first[group] + second[other] + X @ b
        numpyro.sample("y", dist.Binomial(5, logits=z), obs=y)


def nested(X, group, y):
    """Levels within levels, with a predictor of their own."""
    mean, b = coefficients()
    gamma = numpyro.sample("gamma", dist.Normal(0.0, 1.0))
    outer_spread = numpyro.sample("outer_spread", dist.HalfNormal(1.0))
    inner_spread = numpyro.sample("inner_spread", dist.LogNormal(-1.0, 0.5))
    with numpyro.plate("outers", OTHERS):
        outer = numpyro.sample("outer", dist.Normal(mean, outer_spread))
    with numpyro.plate("inners", LEVELS):
        loc = outer[OUTER_OF] + gamma * LEVEL_X
        inner = numpyro.sample("inner", dist.Normal(loc, inner_spread))
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.NegativeBinomial2(jnp.exp(inner[group] + X @ b), 4.0), obs=y)


def slopes(X, group, y):
    """An intercept and a slope of each group, which are independent."""
    mean, b = coefficients()
    spreads = [numpyro.sample(name, dist.Gamma(2.0, 2.0)) for name in ("of_level", "of_slope")]
    noise = numpyro.sample("noise", dist.HalfNormal(2.0))
    with numpyro.plate("groups", LEVELS):
        level = numpyro.sample("level", dist.Normal(0.0, spreads[0]))
        slope = numpyro.sample("slope", dist.Normal(0.0, spreads[1]))
    numpyro.deterministic("range", level.max() - level.min())
    with numpyro.plate("data", X.shape[0]):
        z = mean + level[group] + slope[group] * X[:, 1] + X @ b
        numpyro.sample("y", dist.Normal(z, noise), obs=y)


def of_rows(X, y):
    """Every row has an effect of its own: counts with more spread than Poisson's. Flat priors."""
    mean = numpyro.sample("mean", dist.ImproperUniform(constraints.real, (), ()))
    b = numpyro.sample("b", dist.ImproperUniform(constraints.real_vector, (), (3,)))
    spread = numpyro.sample("spread", dist.ImproperUniform(constraints.positive, (), ()))
    with numpyro.plate("data", X.shape[0]):
        effect = numpyro.sample("effect", dist.Normal(mean + X @ b, spread))
        numpyro.sample("y", dist.Poisson(jnp.exp(effect)), obs=y)


def weighted(X, group, y, mask, weights, exposure):
    mean, b = coefficients()
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("groups", LEVELS):
        effect = numpyro.sample("effect", dist.Normal(0.0, spread))
    with numpyro.plate("data", X.shape[0]), handlers.mask(mask=mask), handlers.scale(scale=weights):
        rate = exposure * jnp.exp(mean + effect[group] + X @ b)
        numpyro.sample("y", dist.Poisson(rate), obs=y)


MIXED = {
    "centred": Case(centred, (X, INNER, BINARY)),
    "non-centred": Case(non_centred, (X, INNER, COUNTS)),
    "reparametrised": Case(reparametrised, (X, INNER, BINARY)),
    "crossed": Case(crossed, (X, INNER, OTHER, np.minimum(COUNTS, 5.0))),
    "nested": Case(nested, (X, INNER, COUNTS)),
    "slopes": Case(slopes, (X, INNER, NUMBERS)),
    "of rows": Case(of_rows, (X, COUNTS)),
    "schools": SCHOOLS["centred"],
    "standard schools": SCHOOLS["non-centred"],
    "weighted": Case(weighted, (X, INNER, COUNTS, MASK, WEIGHTS, 0.5 + WEIGHTS)),
}
PLATES = {"schools": "school", "standard schools": "school"}  # where it is another than "data"


def duel(first, second, y):
    """Strengths of players, of whom each row sees two."""
    shift = numpyro.sample("shift", dist.Normal(0.0, 1.0))
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("players", LEVELS):
        strength = numpyro.sample("strength", dist.Normal(0.0, spread))
    with numpyro.plate("data", len(y)):
        z = shift + strength[first] - strength[second]
        numpyro.sample("y", dist.Bernoulli(logits=z), obs=y)


def squared_scale(X, group, y):
    """The scale of the effects is a function of a site."""
    mean, b = coefficients()
    variance = numpyro.sample("variance", dist.Exponential(1.0))
    with numpyro.plate("groups", LEVELS):
        effect = numpyro.sample("effect", dist.Normal(mean, jnp.sqrt(variance)))
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=effect[group] + X @ b), obs=y)


def shared_scale(X, group, other, y):
    mean, b = coefficients()
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("groups", LEVELS):
        first = numpyro.sample("first", dist.Normal(0.0, spread))
    with numpyro.plate("others", 5):
        second = numpyro.sample("second", dist.Normal(0.0, spread))
    with numpyro.plate("data", X.shape[0]):
        z = mean + first[group] + second[other] + X @ b
        numpyro.sample("y", dist.Bernoulli(logits=z), obs=y)


def heavy_effects(X, group, y):
    mean, b = coefficients()
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("groups", LEVELS):
        effect = numpyro.sample("effect", dist.StudentT(4.0, mean, spread))
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", dist.Bernoulli(logits=effect[group] + X @ b), obs=y)


def scaled_mean(X, group, y):
    """The scale of standard effects is in the mean too."""
    mean, b = coefficients()
    spread = numpyro.sample("spread", dist.HalfNormal(1.0))
    with numpyro.plate("groups", LEVELS):
        unit = numpyro.sample("unit", dist.Normal(0.0, 1.0))
    with numpyro.plate("data", X.shape[0]):
        z = mean + spread * (1.0 + unit[group]) + X @ b
        numpyro.sample("y", dist.Bernoulli(logits=z), obs=y)


NOT_MIXED = {
    "duel": Case(duel, (INNER, OTHER, BINARY)),
    "squared scale": Case(squared_scale, (X, INNER, BINARY)),
    "shared scale": Case(shared_scale, (X, INNER, OTHER, BINARY)),
    "heavy effects": Case(heavy_effects, (X, INNER, BINARY)),
    "scaled mean": Case(scaled_mean, (X, INNER, BINARY)),
}
