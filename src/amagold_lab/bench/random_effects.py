"""Random effects: an effect for every group, against NUTS with its groups centred or not, and at
more and more rows.
"""

import contextlib
import io
import tempfile
import time
import warnings
from collections.abc import Callable
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from amagold import models
from amagold.sampling._sample import sample
from amagold_lab.bench import peers
from amagold_lab.bench.effective_sample_size import TimedDraws, check_draws_agree
from amagold_lab.bench.measure import Benchmark, Measurement, NoRatioError, seconds_of

NUM_SLOPES = 9  # beside an intercept
SPREADS = {"logistic": 1.0, "poisson": 0.5}  # of the effects
FREEDOM = 3.0  # of the half-Student-t prior of their scale, whose scale is 1
MOST_EFFECTS = 100  # that are looked at: the slowest of thousands is mostly chance
# NUTS is counted on so few groups, each with all of its rows: fewer parameters, in its favour
PARTS = {1_000: 50, 10_000: 200}
NUTS_CHAINS, NUTS_WARMUP = 4, 500
COUNTING = 6.0  # seconds of NUTS' draws on a part, for every second that a row is given
NUM_TIMED = 5  # gradients on all data
MINUTES = 5.0  # from the file to the report, at most
FORMULA = "late ~ distance + hour + (1 | origin) + (1 | destination)"


class Grouped(NamedTuple):
    """A regression with one intercept for every group."""

    num_rows: int
    num_groups: int
    family: str


@lru_cache(maxsize=1)
def table_of(problem: Grouped) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictors, groups of about equal sizes, and outcomes."""
    generator = np.random.default_rng(7)
    x = generator.standard_normal((problem.num_rows, NUM_SLOPES), np.float32)
    codes = np.sort(generator.integers(0, problem.num_groups, problem.num_rows)).astype(np.int32)
    effects = generator.normal(0.0, SPREADS[problem.family], problem.num_groups)
    z = x @ generator.normal(0.0, 0.3, NUM_SLOPES).astype(np.float32) - 0.5 + effects[codes]
    if problem.family == "poisson":
        return x, codes, generator.poisson(np.exp(z)).astype(np.float32)
    return x, codes, (generator.random(problem.num_rows) < 1.0 / (1.0 + np.exp(-z))).astype(np.int8)


class Swept(NamedTuple):
    """Our draws, and what a sweep looks at."""

    draws: TimedDraws
    num_rows: float
    compile_seconds: float


def our_draws(problem: Grouped, num_samples: int = 1_000) -> Swept:
    """What a user gets who asks for draws and says nothing else."""
    jax.clear_caches()
    x, codes, y = table_of(problem)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is wrong shows in the effective draws
        target = models.mixed(
            x, y, {"g": codes}, problem.family, prior_scale=1.0, standardize=False
        )
        run = sample(target, num_samples, progress=False)
    setup = time.perf_counter() - began - run.sampling_seconds
    found = run.posterior
    values = [
        found["theta"].to_numpy(),
        np.log(found["g_sigma"].to_numpy())[..., None],
        found["g"].to_numpy()[..., :MOST_EFFECTS],
    ]
    rows = float(run.sample_stats["num_energy_examples"].mean())
    draws = TimedDraws(np.concatenate(values, axis=2), setup, run.sampling_seconds)
    return Swept(draws, rows, run.compile_seconds)


LogDensity = Callable[..., jax.Array]


def log_density(problem: Grouped, is_centred: bool) -> LogDensity:
    """Of (intercept, slopes, log scale, effects): a_g ~ N(intercept, s^2) themselves, which is how
    the intercept mixes, or whitened.
    """

    def density(position: jax.Array, x: Any, codes: Any, y: Any) -> jax.Array:
        intercept, slopes = position[0], position[1 : NUM_SLOPES + 1]
        log_scale, own = position[NUM_SLOPES + 1], position[NUM_SLOPES + 2 :]
        scale = jnp.exp(log_scale)
        whitened = (own - intercept) / scale if is_centred else own
        levels = own if is_centred else intercept + scale * own
        z = x @ slopes + levels[codes]
        if problem.family == "poisson":
            likelihood = jnp.sum(y * z - jnp.exp(z) - gammaln(y + 1.0))
        else:
            likelihood = jnp.sum(y * z - jax.nn.softplus(z))
        prior = -0.5 * (jnp.sum(slopes**2) + intercept**2 + jnp.sum(whitened**2))
        if is_centred:
            prior = prior - problem.num_groups * log_scale
        of_scale = -0.5 * (FREEDOM + 1.0) * jnp.log1p(scale**2 / FREEDOM) + log_scale
        return likelihood + prior + of_scale

    return density


def nuts_draws(problem: Grouped, is_centred: bool, seconds: float) -> TimedDraws:
    """NumPyro's NUTS with the mass and step size that it finds, from zero, in our parameters."""
    peers.require("numpyro")
    import numpyro
    from numpyro.distributions import ImproperUniform, constraints
    from numpyro.infer import NUTS, init_to_value

    size = NUM_SLOPES + 2 + problem.num_groups
    density = log_density(problem, is_centred)

    def model(*data: Any) -> None:
        position = numpyro.sample("position", ImproperUniform(constraints.real_vector, (), (size,)))
        numpyro.factor("log_density", density(position, *data))

    kernel = NUTS(model, init_strategy=init_to_value(values={"position": jnp.zeros(size)}))
    data = tuple(jnp.asarray(each) for each in table_of(problem))
    found = peers.run_kernel(kernel, data, NUTS_CHAINS, NUTS_WARMUP, seconds, 10, 0)
    return found._replace(values=_in_our_parameters(found.values, is_centred))


def _in_our_parameters(values: np.ndarray, is_centred: bool) -> np.ndarray:
    fixed, own = values[..., : NUM_SLOPES + 2], values[..., NUM_SLOPES + 2 :][..., :MOST_EFFECTS]
    scale = np.exp(fixed[..., -1:])
    effects = own - fixed[..., :1] if is_centred else scale * own
    return np.concatenate([fixed, effects], axis=-1)


def measure_rate(problem: Grouped, seconds: float) -> Measurement:
    """Ours / the better of NUTS with its groups centred or not: its effective draws for each
    gradient are counted on some of the groups, its gradients timed on all data.
    """
    few = PARTS[problem.num_groups]
    part = problem._replace(num_rows=problem.num_rows * few // problem.num_groups, num_groups=few)
    ours_of_part = our_draws(part).draws
    counted = {way: nuts_draws(part, way, COUNTING * seconds) for way in (True, False)}
    found = {way: each.num_effective / each.sampling_gradients for way, each in counted.items()}
    swept = our_draws(problem)
    ours = swept.draws.per_second
    timed = {way: _gradient_seconds(problem, way) for way in found}
    best = max(found, key=lambda way: found[way] / timed[way])
    check_draws_agree(ours_of_part, counted[best], "NUTS")
    theirs = found[best] / timed[best]
    return Measurement(
        ours / theirs,
        swept.compile_seconds,
        f"{ours:,.0f} and {theirs:,.2g} effective draws/s; {swept.num_rows:,.0f} rows a sweep, "
        f"{swept.draws.setup_seconds:.0f} s before the first draw; NUTS "
        f"{'centred' if best else 'not centred'}: {found[best]:.2g} for a gradient of "
        f"{NUTS_CHAINS} chains, {1e3 * timed[best]:.0f} ms",
    )


def _gradient_seconds(problem: Grouped, is_centred: bool) -> float:
    """Of all chains side by side, the fastest of a few."""
    data = tuple(jnp.asarray(each) for each in table_of(problem))
    positions = jnp.zeros((NUTS_CHAINS, NUM_SLOPES + 2 + problem.num_groups))
    gradients = jax.jit(
        jax.vmap(jax.value_and_grad(log_density(problem, is_centred)), in_axes=(0, *[None] * 3))
    )

    def once() -> None:
        jax.block_until_ready(gradients(positions, *data))

    once()
    return min(seconds_of(once) for _ in range(NUM_TIMED))


def measure_growth(few: int, many: int, num_groups: int, seconds: float) -> Measurement:
    """Rows that a sweep looks at, with many rows over those with few."""
    found = [our_draws(Grouped(number, num_groups, "logistic"), 500) for number in (few, many)]
    rows = [each.num_rows for each in found]
    told = " and ".join(
        f"{each.num_rows:,.0f} rows a sweep ({each.draws.per_second:,.0f} effective draws/s)"
        for each in reversed(found)
    )
    return Measurement(rows[1] / rows[0], details=told)


def measure_flights(num_rows: int, seconds: float) -> Measurement:
    """Of `amagold fit` with store and report, programs that are kept included."""
    from amagold.cli._main import main
    from amagold_lab.bench.factors import flights

    table = flights(num_rows)
    with tempfile.TemporaryDirectory() as folder:
        file, page = Path(folder) / "flights.parquet", Path(folder) / "late.html"
        table.astype({"origin": str, "destination": str}).to_parquet(file)
        more = ["--store", str(Path(folder) / "run.zarr"), "--report", str(page)]
        began = time.perf_counter()
        with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
            if main(["fit", str(file), FORMULA, *more]):
                raise NoRatioError("the fit failed")
        spent = time.perf_counter() - began
        from amagold import load, minimum_ess

        run = load(Path(folder) / "run.zarr")
        effective = minimum_ess(run.posterior)
    return Measurement(
        spent / (60.0 * MINUTES), details=f"{spent:.0f} s, {effective:,.0f} effective draws"
    )


EFFECT_BENCHMARKS = (
    *(
        Benchmark(
            f"effects-{family}-{name}",
            "effective draws/s after warm-up of sample() / of NumPyro's NUTS, groups centred or "
            "not, whichever is better (draws for each gradient counted on some of the groups, "
            f"gradients timed on all data): {family}, 10^6 x 10, {name} groups with an effect each",
            wanted,
            True,
            partial(measure_rate, Grouped(1_000_000, num_groups, family)),
            is_long=True,
        )
        for family in SPREADS
        for name, num_groups, wanted in (("1e3", 1_000, 1_000.0), ("1e4", 10_000, 100.0))
    ),
    Benchmark(
        "effects-rows",
        "rows that a sweep of random effects looks at: 10^7 rows / 10^5 rows, 1,000 groups",
        1.2,
        False,
        partial(measure_growth, 100_000, 10_000_000, 1_000),
        is_long=True,
    ),
    Benchmark(
        "effects-flights",
        "seconds from the file to the report of 3 x 10^6 rows with two crossed random effects of "
        "228 airports each / five minutes",
        1.0,
        False,
        partial(measure_flights, 3_000_000),
        is_long=True,
    ),
)
