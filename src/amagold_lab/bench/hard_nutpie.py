"""nutpie's NUTS on the hard set, as its users run it: PyMC's models, compiled by numba, in float64.

The priors are those of `hard_models.py`, by the same names, so that draws become the same vectors.
"""

import time
import warnings
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from amagold_lab.bench.hard_models import (
    FUNNEL_WIDTH,
    NUM_COUNTIES,
    NUM_RETURNS,
    NUM_STEPPED,
    NUM_YEARS,
    HardModel,
    flatten_draws,
)
from amagold_lab.bench.hard_peers import NUM_CHAINS, NUM_SAMPLES, NUM_WARMUP, CountedDraws
from amagold_lab.bench.peers import require


def eight_schools(pm: Any, effects: np.ndarray, errors: np.ndarray) -> None:
    mean, spread = pm.Normal("mu", 0.0, 5.0), pm.HalfCauchy("tau", 5.0)
    standard = pm.Normal("standard", shape=len(effects))
    pm.Normal("y", mean + spread * standard, errors, observed=effects)


def radon(pm: Any, county: np.ndarray, floor: np.ndarray, observed: np.ndarray) -> None:
    mean, spread = pm.Normal("mean", 0.0, 10.0), pm.HalfNormal("spread", 1.0)
    standard = pm.Normal("standard", shape=NUM_COUNTIES)
    slope, scale = pm.Normal("slope", 0.0, 10.0), pm.HalfNormal("scale", 1.0)
    intercept = mean + spread * standard
    pm.Normal("y", intercept[county] + slope * floor, scale, observed=observed)


def poisson_glmm(pm: Any, year: np.ndarray, counts: np.ndarray) -> None:
    coefficients = pm.Normal("coefficients", 0.0, 10.0, shape=4)
    spread = pm.HalfNormal("spread", 1.0)
    effects = pm.Normal("effects", 0.0, spread, shape=NUM_YEARS)
    powers = year[:, None] ** np.arange(4)
    pm.Poisson("y", pm.math.exp(powers @ coefficients + effects), observed=counts)


def stepped_gaussian(pm: Any, precision: np.ndarray) -> None:
    position = pm.Flat("position", shape=NUM_STEPPED)
    pm.Potential("density", -0.5 * position @ precision.astype(float) @ position)


def funnel(pm: Any) -> None:
    """Of its free numbers alone."""
    pm.Normal("width", 0.0, 3.0)
    pm.Normal("x_decentered", shape=FUNNEL_WIDTH - 1)


def stochastic_volatility(pm: Any, returns: np.ndarray) -> None:
    scan = require("pytensor").scan
    persistence, spread = pm.Beta("persistence", 20.0, 1.5), pm.HalfCauchy("spread", 2.0)
    mean = pm.Normal("mean", 0.0, 2.0)
    standard = pm.Normal("standard", shape=NUM_RETURNS)
    first = spread * standard[0] / pm.math.sqrt(1.0 - persistence**2)

    def follow(noise: Any, log: Any, persistence: Any, spread: Any) -> Any:
        return persistence * log + spread * noise

    later = scan(
        follow,
        sequences=[standard[1:]],
        outputs_info=[first],
        non_sequences=[persistence, spread],
        return_updates=False,
    )
    logs = mean + pm.math.concatenate([first[None], later])
    pm.Normal("y", 0.0, pm.math.exp(0.5 * logs), observed=returns)


MODELS: dict[str, Callable[..., None]] = {
    "eight schools": eight_schools,
    "radon": radon,
    "GLMM Poisson": poisson_glmm,
    "Gaussian": stepped_gaussian,
    "funnel": funnel,
    "stochastic volatility": stochastic_volatility,
}


@cache
def compiled(name: str, make: Callable[[], HardModel]) -> tuple[Any, float]:
    """nutpie's model, and the seconds that it took to make."""
    nutpie, pymc = (require(package, "nutpie") for package in ("nutpie", "pymc"))
    began = time.perf_counter()
    with pymc.Model() as model:
        MODELS[name](pymc, *make().data)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTensor's, of other ways to compile
        program = nutpie.compile_pymc_model(model)
    return program, time.perf_counter() - began


def nutpie_nuts(make: Callable[[], HardModel], seed: int) -> CountedDraws:
    """Its own driver and starts. Of one call's time, draws take their share of gradients."""
    nutpie, problem = require("nutpie", "nutpie"), make()
    program, compiling = compiled(problem.name, make)
    began = time.process_time()
    trace = nutpie.sample(
        program,
        draws=NUM_SAMPLES,
        tune=NUM_WARMUP,
        chains=NUM_CHAINS,
        cores=1,
        seed=seed,
        progress_bar=False,
        save_warmup=True,
    )
    seconds = time.process_time() - began
    before, after = (
        float(group["n_steps"].sum()) for group in (trace.warmup_sample_stats, trace.sample_stats)
    )
    share = after / (before + after)
    values = flatten_draws(problem, trace.posterior)
    return CountedDraws(values, share * seconds, after, (1.0 - share) * seconds, compiling)
