"""Posteriors without rows to save, as NumPyro users write them: a hard set. All tables are made
here, in the shape of the ones that gave the models their names.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

# Rubin (1981): what eight schools' coaching was estimated to bring, and the standard errors
EFFECTS = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0], np.float32)
ERRORS = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0], np.float32)
NUM_HOUSES, NUM_COUNTIES = 919, 85  # as in Minnesota's survey of radon
NUM_YEARS = 40  # of counts, as in the falcons of Kery and Schaub (2011)
NUM_RETURNS = 100
NUM_STEPPED = 100  # parameters of the ill-conditioned Gaussian
CONDITION = 1e3  # of its covariance
FUNNEL_WIDTH = 25


class HardModel(NamedTuple):
    """A NumPyro model and the arguments that it is called with."""

    name: str
    model: Callable[..., Any]
    data: tuple[np.ndarray, ...] = ()


class FlatDensity(NamedTuple):
    """Its log density over one vector of free numbers, the same function for every sampler."""

    log_density: Callable[[jax.Array], jax.Array]
    num_parameters: int


def flat_density(problem: HardModel) -> FlatDensity:
    """By NumPyro's own bijections, their Jacobians included."""
    from numpyro.infer.util import initialize_model

    found: Any = initialize_model(jax.random.key(0), problem.model, model_args=problem.data)
    start, unravel = ravel_pytree(found.param_info.z)
    return FlatDensity(lambda position: -found.potential_fn(unravel(position)), start.shape[0])


def flatten_draws(problem: HardModel, draws: Mapping[str, Any]) -> np.ndarray:
    """Draws of the sites, (chain, draw, ...), as the vectors that the density takes."""
    from numpyro.infer.util import initialize_model, unconstrain_fn

    found: Any = initialize_model(jax.random.key(0), problem.model, model_args=problem.data)

    def flatten(values: dict[str, jax.Array]) -> jax.Array:
        return ravel_pytree(unconstrain_fn(problem.model, problem.data, {}, values))[0]

    values = {name: jnp.asarray(np.asarray(draws[name])) for name in found.param_info.z}
    return np.asarray(jax.vmap(jax.vmap(flatten))(values))


def eight_schools() -> HardModel:
    """Non-centred."""
    import numpyro
    import numpyro.distributions as dist

    def model(effects: Any, errors: Any) -> None:
        mean: Any = numpyro.sample("mu", dist.Normal(0.0, 5.0))
        spread: Any = numpyro.sample("tau", dist.HalfCauchy(5.0))
        standard: Any = numpyro.sample("standard", dist.Normal().expand([len(EFFECTS)]))
        numpyro.sample("y", dist.Normal(mean + spread * standard, errors), obs=effects)

    return HardModel("eight schools", model, (EFFECTS, ERRORS))


def radon() -> HardModel:
    """Intercepts of counties, non-centred, and one slope for the floor."""
    import numpyro
    import numpyro.distributions as dist

    generator = np.random.default_rng(1)
    # few counties have many houses, many have few
    shares = generator.dirichlet(np.full(NUM_COUNTIES, 0.7))
    county = generator.choice(NUM_COUNTIES, NUM_HOUSES, p=shares)
    floor = (generator.random(NUM_HOUSES) < 0.17).astype(np.float32)
    level = 1.46 + 0.33 * generator.standard_normal(NUM_COUNTIES)
    noise = 0.76 * generator.standard_normal(NUM_HOUSES)
    observed = (level[county] - 0.69 * floor + noise).astype(np.float32)

    def model(county: Any, floor: Any, observed: Any) -> None:
        mean: Any = numpyro.sample("mean", dist.Normal(0.0, 10.0))
        spread: Any = numpyro.sample("spread", dist.HalfNormal(1.0))
        standard: Any = numpyro.sample("standard", dist.Normal().expand([NUM_COUNTIES]))
        slope: Any = numpyro.sample("slope", dist.Normal(0.0, 10.0))
        scale: Any = numpyro.sample("scale", dist.HalfNormal(1.0))
        intercept = mean + spread * standard
        numpyro.sample("y", dist.Normal(intercept[county] + slope * floor, scale), obs=observed)

    return HardModel("radon", model, (county, floor, observed))


def poisson_glmm() -> HardModel:
    """Counts of forty years: a cubic trend, and a centred effect of every year."""
    import numpyro
    import numpyro.distributions as dist

    generator = np.random.default_rng(2)
    year = np.linspace(-1.0, 1.0, NUM_YEARS)
    trend = 4.0 + 1.3 * year + 0.1 * year**2 - 0.4 * year**3
    effect = 0.15 * generator.standard_normal(NUM_YEARS)
    counts = generator.poisson(np.exp(trend + effect)).astype(np.float32)

    def model(year: Any, counts: Any) -> None:
        coefficients: Any = numpyro.sample("coefficients", dist.Normal(0.0, 10.0).expand([4]))
        spread: Any = numpyro.sample("spread", dist.HalfNormal(1.0))
        effects: Any = numpyro.sample("effects", dist.Normal(0.0, spread).expand([NUM_YEARS]))
        powers = year[:, None] ** jnp.arange(4)
        numpyro.sample("y", dist.Poisson(jnp.exp(powers @ coefficients + effects)), obs=counts)

    return HardModel("GLMM Poisson", model, (year.astype(np.float32), counts))


def stepped_gaussian() -> HardModel:
    """100 parameters, variances from 1 to 1/1000 along directions that are nobody's axes."""
    import numpyro
    import numpyro.distributions as dist

    generator = np.random.default_rng(3)
    axes, _ = np.linalg.qr(generator.standard_normal((NUM_STEPPED, NUM_STEPPED)))
    variances = np.geomspace(1.0, 1.0 / CONDITION, NUM_STEPPED)
    precision = (axes / variances) @ axes.T

    def model(precision: Any) -> None:
        flat = dist.ImproperUniform(dist.constraints.real_vector, (), (NUM_STEPPED,))
        position: Any = numpyro.sample("position", flat)
        numpyro.factor("density", -0.5 * position @ precision @ position)

    return HardModel("Gaussian", model, (precision.astype(np.float32),))


def funnel() -> HardModel:
    """Neal's funnel, reparametrised: its free numbers are independent."""
    import numpyro
    import numpyro.distributions as dist
    from numpyro.handlers import reparam
    from numpyro.infer.reparam import LocScaleReparam

    def model() -> None:
        width: Any = numpyro.sample("width", dist.Normal(0.0, 3.0))
        scales = jnp.broadcast_to(jnp.exp(0.5 * width), (FUNNEL_WIDTH - 1,))
        numpyro.sample("x", dist.Normal(0.0, scales))

    free: Any = reparam(model, config={"x": LocScaleReparam(0.0)})
    return HardModel("funnel", free)


def stochastic_volatility() -> HardModel:
    """Log volatilities that follow an autoregression, non-centred."""
    import numpyro
    import numpyro.distributions as dist

    generator = np.random.default_rng(4)
    logs = [0.0]
    for _ in range(NUM_RETURNS - 1):
        logs.append(0.95 * logs[-1] + 0.25 * float(generator.standard_normal()))
    returns = np.exp(0.5 * np.array(logs)) * generator.standard_normal(NUM_RETURNS)

    def model(returns: Any) -> None:
        persistence: Any = numpyro.sample("persistence", dist.Beta(20.0, 1.5))
        spread: Any = numpyro.sample("spread", dist.HalfCauchy(2.0))
        mean: Any = numpyro.sample("mean", dist.Normal(0.0, 2.0))
        standard: Any = numpyro.sample("standard", dist.Normal().expand([NUM_RETURNS]))
        first = spread * standard[0] / jnp.sqrt(1.0 - persistence**2)

        def follow(log: jax.Array, noise: jax.Array) -> tuple[jax.Array, jax.Array]:
            log = persistence * log + spread * noise
            return log, log

        _, later = jax.lax.scan(follow, first, standard[1:])
        logs = mean + jnp.concatenate([first[None], later])
        numpyro.sample("y", dist.Normal(0.0, jnp.exp(0.5 * logs)), obs=returns)

    return HardModel("stochastic volatility", model, (returns.astype(np.float32),))


HARD_MODELS: tuple[Callable[[], HardModel], ...] = (
    eight_schools,
    radon,
    poisson_glmm,
    stepped_gaussian,
    funnel,
    stochastic_volatility,
)
