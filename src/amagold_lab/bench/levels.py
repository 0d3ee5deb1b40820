"""Factors of many levels: how many rows a test looks at by family, and ten thousand levels against
the gradients of NUTS.
"""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold_lab.bench.measure import Measurement, seconds_of
from amagold_lab.bench.peers import require

FAMILIES = ("negative_binomial", "robust", "gamma", "ordinal")
NUM_LEVELS, NUM_CLASSES = 300, 5
SHAPE = 3.0  # of gamma outcomes and of counts, and degrees of freedom of robust noise
NUM_NUTS = 3  # draws, for the gradients that each takes
STEP_SIZE = 0.17  # of NUTS in posterior standard deviations: about 0.8 accepted for 10,000 of them


def many_levels(num_rows: int, num_levels: int, family: str) -> Any:
    """A table of two numbers and one factor, with a real model behind."""
    pandas = require("pandas")
    generator = np.random.default_rng(5)
    codes = generator.integers(0, num_levels, num_rows)
    if num_levels == NUM_LEVELS:  # of very different sizes, like Zipf's words
        share = 1.0 / np.arange(1, num_levels + 1) ** 1.3
        codes = generator.choice(num_levels, num_rows, p=share / share.sum())
    x, w = generator.normal(size=(2, num_rows))
    z = 0.3 * x - 0.2 * w + generator.normal(0.0, 0.5, num_levels)[codes]
    mean = np.exp(z)
    if family == "negative_binomial":
        y: Any = generator.poisson(mean * generator.gamma(SHAPE, 1.0 / SHAPE, num_rows))
    elif family == "gamma":
        y = mean * generator.gamma(SHAPE, 1.0 / SHAPE, num_rows)
    elif family == "robust":
        y = z + generator.standard_t(SHAPE, num_rows)
    elif family == "ordinal":
        y = np.digitize(z + generator.logistic(size=num_rows), np.linspace(-2, 2, NUM_CLASSES - 1))
    else:
        y = (generator.random(num_rows) < 1.0 / (1.0 + np.exp(-z))).astype(np.int8)
    labels = np.array([f"L{number:05d}" for number in range(num_levels)])
    columns = {"y": y, "x": x, "w": w, "level": pandas.Categorical.from_codes(codes, labels)}
    return pandas.DataFrame(columns)


def measure_rows(num_rows: int, seconds: float) -> Measurement:
    """The largest share of rows that a test of a family looks at."""
    from amagold import fit

    found: dict[str, float] = {}
    compiling = 0.0
    for family in FAMILIES:
        table = many_levels(num_rows, NUM_LEVELS, family)
        run = fit("y ~ x + w + level", table, family, num_samples=200, progress=False)
        found[family] = float(run.sample_stats["num_energy_examples"].mean())
        compiling += run.compile_seconds
    told = ", ".join(f"{family} {rows:,.0f}" for family, rows in found.items())
    return Measurement(max(found.values()) / num_rows, compiling, f"rows: {told}")


def measure_ten_thousand(num_rows: int, num_levels: int, seconds: float) -> Measurement:
    """Ours from the table to the last draw; NUTS' from the gradients of a few draws in units of the
    diagonal curvature, each as quick as one alone, and as if every draw were independent.
    """
    from amagold import fit, minimum_ess

    table = many_levels(num_rows, num_levels, "logistic")
    began = time.perf_counter()
    run = fit("y ~ x + level", table, "logistic", num_samples=500, progress=False)
    spent = time.perf_counter() - began
    effective = minimum_ess(run.posterior)
    target = run.model.target
    gradient, steps, rate = _nuts(target)
    ours = effective / run.sampling_seconds
    words = (
        f"{effective:.0f} effective draws of the slowest of {target.init.size:,} coefficients from "
        f"4 x 500 in {spent:.0f} s, of which {run.sampling_seconds:.1f} s sampling; NUTS: "
        f"{steps:.0f} gradients of {1e3 * gradient:.0f} ms for a draw ({rate:.2f} accepted)"
    )
    return Measurement(ours * steps * gradient, run.compile_seconds, words)


def _nuts(target: Any) -> tuple[float, float, float]:
    """Seconds of a gradient over all rows, how many a draw of NUTS takes, and its acceptance."""
    from amagold.mode._mode_search import find_mode

    blackjax = require("blackjax")
    predictors = target.data.predictors
    # the curvature of logistic rows is at most a quarter of the sum of their squares
    squares = [np.square(np.asarray(predictors.numbers, np.float64)).sum(axis=0)]
    unit = float(predictors.unit[0])
    for factor, size in enumerate(predictors.sizes):
        codes = np.asarray(predictors.codes)[:, factor]
        squares.append(unit**2 * np.bincount(codes[codes >= 0], minlength=size))
    scales = jnp.asarray(1.0 / np.sqrt(1.0 + 0.25 * np.concatenate(squares)), jnp.float32)

    def log_density(away: jax.Array, data: Any) -> jax.Array:
        at = scales * away
        return target.log_likelihoods(at, data).sum() + target.log_prior(at)

    value_and_gradient = jax.jit(jax.value_and_grad(log_density))
    position = jnp.asarray(find_mode(target, target.init).position) / scales
    jax.block_until_ready(value_and_gradient(position, target.data))
    gradient = min(
        seconds_of(lambda: jax.block_until_ready(value_and_gradient(position, target.data)))
        for _ in range(5)
    )

    @jax.jit
    def step(key: jax.Array, state: Any, data: Any) -> Any:
        return blackjax.nuts(
            lambda at: log_density(at, data),
            step_size=STEP_SIZE,
            inverse_mass_matrix=jnp.ones(position.shape),
        ).step(key, state)

    kernel = blackjax.nuts(
        lambda at: log_density(at, target.data),
        step_size=STEP_SIZE,
        inverse_mass_matrix=jnp.ones(position.shape),
    )
    state = kernel.init(position)
    counts, rates = [], []
    for number in range(NUM_NUTS + 1):
        state, info = step(jax.random.key(number), state, target.data)
        if number:  # the first one leaves the start
            counts.append(int(info.num_integration_steps))
            rates.append(float(info.acceptance_rate))
    return gradient, float(np.mean(counts)), float(np.mean(rates))
