"""Tables of factors: a table like that of three million flights, with hundreds of airports of very
different sizes, against NUTS, and its codes against the columns they stand for.
"""

import time
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold_lab.bench.measure import Measurement, in_turns, seconds_of
from amagold_lab.bench.peers import require

FORMULA = "late ~ distance + C(hour) + C(weekday) + C(month) + origin + destination"
LEVELS = {"hour": 24, "weekday": 7, "month": 6}
NUM_AIRPORTS = 228
NUM_NUTS = 6  # draws of NUTS, for the gradients that each takes
FEWER = 200_000  # rows whose expanded matrix fits into a gigabyte
STEP_SIZE = 0.35  # of NUTS in units of its mass: about 0.8 accepted for 500 parameters


@cache
def flights(num_rows: int) -> Any:
    """A table of rows that differ in airports like Zipf's words do, with a real model behind."""
    pandas = require("pandas")
    generator = np.random.default_rng(3)
    share = 1.0 / np.arange(1, NUM_AIRPORTS + 1) ** 1.3
    airports = [f"A{number:03d}" for number in range(NUM_AIRPORTS)]
    columns: dict[str, Any] = {"distance": generator.gamma(2.0, 350.0, num_rows).round(-1)}
    z = np.full(num_rows, -1.5) + 1e-4 * columns["distance"]
    for name, size in LEVELS.items():
        columns[name] = generator.integers(0, size, num_rows).astype(np.int8)
        z += generator.normal(0.0, 0.5, size)[columns[name]]
    for name in ("origin", "destination"):
        codes = generator.choice(NUM_AIRPORTS, num_rows, p=share / share.sum())
        columns[name] = pandas.Categorical.from_codes(codes, airports)
        z += generator.normal(0.0, 0.4, NUM_AIRPORTS)[codes]
    columns["late"] = (generator.random(num_rows) < 1.0 / (1.0 + np.exp(-z))).astype(np.int8)
    return pandas.DataFrame(columns)


def measure_rate(num_rows: int, seconds: float) -> Measurement:
    """Ours from `fit`; NUTS' from the gradients that a few of its draws take, each as quick as one
    alone, and as if every draw were independent: more than it can reach.
    """
    from amagold import fit, minimum_ess

    began = time.perf_counter()
    run = fit(FORMULA, flights(num_rows), num_samples=1000, progress=False)
    spent = time.perf_counter() - began
    ours = minimum_ess(run.posterior) / run.sampling_seconds
    per_draw = _nuts_seconds(run.model.target, run.sampler.proposal.mass)
    return Measurement(
        ours * per_draw,
        run.compile_seconds,
        f"{ours:.0f} effective draws/s and at most {1.0 / per_draw:.2f}; {spent:.0f} s from the "
        f"table to {run.posterior.sizes['draw']} draws of each of four chains",
    )


def _nuts_seconds(target: Any, mass: Any) -> float:
    """Of one draw: the gradients of a few draws in units of the whole curvature, each at the time
    of one.
    """
    blackjax = require("blackjax")

    @jax.jit
    def value_and_gradient(data: Any, position: jax.Array) -> Any:
        def log_density(at: jax.Array) -> jax.Array:
            return target.log_likelihoods(at, data).sum() + target.log_prior(at)

        return jax.value_and_grad(log_density)(position)

    from amagold.mode._mode_search import find_mode

    position = jnp.asarray(find_mode(target, target.init).position)
    jax.block_until_ready(value_and_gradient(target.data, position))
    gradient = min(
        seconds_of(lambda: jax.block_until_ready(value_and_gradient(target.data, position)))
        for _ in range(5)
    )

    # W^T q is a position of unit mass, so that NUTS needs none
    def whitened(away: jax.Array) -> jax.Array:
        at = position + mass.velocity(away)
        return target.log_likelihoods(at, target.data).sum() + target.log_prior(at)

    kernel = blackjax.nuts(
        whitened, step_size=STEP_SIZE, inverse_mass_matrix=jnp.ones(position.shape)
    )
    state, steps = kernel.init(jax.random.normal(jax.random.key(1), position.shape)), []
    step = jax.jit(kernel.step)
    for number in range(NUM_NUTS):
        state, info = step(jax.random.key(number), state)
        steps.append(int(info.num_integration_steps))
    return float(np.mean(steps)) * gradient


def measure_codes(seconds: float) -> Measurement:
    """Of a pass for the energy and its first two derivatives, as set-up takes them."""
    from amagold import models
    from amagold.mode._derivatives import derivatives_at
    from amagold.tables._fit import model_of
    from amagold.tables._read_table import read_table

    table = read_table(flights(FEWER))
    coded: Any = model_of(FORMULA, table, "logistic", None, False, None).target
    predictors = coded.data.predictors
    columns = [np.asarray(predictors.numbers)[:, 1:]]
    for factor, size in enumerate(predictors.sizes):
        columns.append(np.asarray(predictors.codes)[:, factor, None] == np.arange(size))
    expanded = np.concatenate(columns, axis=1).astype(np.float32)
    outcome = np.arange(len(expanded)) % 2
    dense = models.logistic(expanded, outcome, standardize=False, prior_scale=1.0)

    def pass_over(target: Any) -> float:
        position = jnp.zeros(target.init.shape)
        return seconds_of(lambda: jax.block_until_ready(derivatives_at(target, position, 2)))

    compiling = pass_over(coded) + pass_over(dense)
    pairs = in_turns(lambda: pass_over(dense), lambda: pass_over(coded), seconds, 3)
    bytes_of = [sum(leaf.nbytes for leaf in jax.tree.leaves(each.data)) for each in (coded, dense)]
    slow, quick = (min(times) for times in zip(*pairs, strict=True))
    return Measurement(
        slow / quick,
        compiling,
        f"{slow:.2f} and {quick:.3f} s; {bytes_of[0] / 1e6:.0f} MB of codes and numbers, "
        f"{bytes_of[1] / 1e6:.0f} MB expanded",
    )
