"""Models that users write elsewhere, or a likelihood of their own: against the ready-made model and
against NUTS.
"""

import time
from functools import lru_cache, partial
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.scipy.special import gammaln

from amagold.core import trees
from amagold.mode._mode_search import find_mode
from amagold.target import LinearLikelihood, Posterior
from amagold_lab.bench import benchmark_posteriors, peers
from amagold_lab.bench.against_peers import COUNTING, NUTS_CHAINS, nuts_draws, once, our_draws
from amagold_lab.bench.benchmark_posteriors import BenchmarkPosterior
from amagold_lab.bench.effective_sample_size import check_draws_agree
from amagold_lab.bench.measure import Measurement

NUM_RATE, NUM_GATE = 10, 5  # coefficients of each predictor, an intercept first
FEWEST_GRADIENTS = 5  # that are timed on all data


def numpyro_logistic(num_examples: int, num_parameters: int) -> BenchmarkPosterior:
    """The logistic regression as a NumPyro model."""

    def target() -> Posterior:
        peers.require("numpyro")
        from amagold.interop._from_numpyro import from_numpyro

        predictors, outcomes = benchmark_posteriors.logistic_table(num_examples, num_parameters)
        found = from_numpyro(_model, predictors, outcomes)
        assert isinstance(found, Posterior)
        return found

    return benchmark_posteriors.logistic(num_examples, num_parameters)._replace(target=target)


def _model(X: Any, y: Any) -> None:
    import numpyro
    from numpyro import distributions

    a = numpyro.sample("a", distributions.Normal(0.0, 1.0))
    b = numpyro.sample("b", distributions.Normal(0.0, 1.0).expand([X.shape[1]]).to_event(1))
    with numpyro.plate("data", X.shape[0]):
        numpyro.sample("y", distributions.Bernoulli(logits=a + X @ b), obs=y)


def measure_numpyro(num_examples: int, num_parameters: int, seconds: float) -> Measurement:
    """Effective draws/s of the NumPyro model / of `models.logistic`; both agree."""
    name = f"logistic {num_examples} x {num_parameters}"
    theirs = once(
        name, partial(our_draws, benchmark_posteriors.logistic(num_examples, num_parameters))
    )
    ours = once(
        ("NumPyro", name), partial(our_draws, numpyro_logistic(num_examples, num_parameters))
    )
    check_draws_agree(ours, theirs, "models.logistic")
    found, other = ours.per_second, theirs.per_second
    return Measurement(
        found / other,
        ours.setup_seconds,
        f"{found:,.0f} and {other:,.0f} effective draws/s, after {ours.setup_seconds:.0f} s and "
        f"{theirs.setup_seconds:.0f} s",
    )


@lru_cache(maxsize=2)
def _counts(num_examples: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Predictors of the rate and of the gate, and counts, of which some are zero for nothing."""
    generator = np.random.default_rng(0)
    x = generator.standard_normal((num_examples, NUM_RATE - 1), np.float32)
    w = generator.standard_normal((num_examples, NUM_GATE - 1), np.float32)
    rate = np.exp(0.5 + x @ generator.normal(0.0, 0.15, NUM_RATE - 1))
    gate = 1.0 / (1.0 + np.exp(1.0 - w @ generator.normal(0.0, 0.3, NUM_GATE - 1)))
    counts = generator.poisson(rate) * (generator.random(num_examples) > gate)
    return x, w, counts.astype(np.float32)


def zero_inflated(z: dict[str, jax.Array], row: dict[str, jax.Array]) -> jax.Array:
    """A user's own likelihood: counts that are zero with a probability of their own."""
    some = jax.nn.log_sigmoid(-z["gate"]) + (
        row["y"] * z["rate"] - jnp.exp(z["rate"]) - gammaln(row["y"] + 1.0)
    )
    none = jnp.logaddexp(jax.nn.log_sigmoid(z["gate"]), some)
    return jnp.where(row["y"] > 0, some, none)


def _log_prior(position: dict[str, jax.Array]) -> jax.Array:
    return -0.5 * jnp.sum(trees.flatten(position) ** 2)


def own_counts(num_examples: int) -> BenchmarkPosterior:
    """As a `LinearLikelihood`, and for NUTS with one matrix product for each predictor."""

    def target() -> Posterior:
        x, w, y = _counts(num_examples)
        likelihood = LinearLikelihood(zero_inflated, {"gate": (1, "w"), "rate": (1, "x")})
        return Posterior(likelihood, _log_prior, {"x": x, "w": w, "y": y})

    def data() -> tuple[Any, ...]:
        x, w, y = _counts(num_examples)
        one = np.ones((num_examples, 1), np.float32)
        return jnp.hstack([one, w]), jnp.hstack([one, x]), jnp.asarray(y)

    def log_density(position: jax.Array, w: Any, x: Any, y: Any) -> jax.Array:
        z = {"gate": w @ position[:NUM_GATE], "rate": x @ position[NUM_GATE:]}
        return jnp.sum(zero_inflated(z, {"y": y})) - 0.5 * jnp.sum(position**2)

    return BenchmarkPosterior(f"zero-inflated {num_examples}", target, log_density, data)


def measure_own(num_examples: int, num_counted: int, seconds: float) -> Measurement:
    """Effective draws/s after warm-up of sample() / of NUTS, given mode and Hessian: its effective
    draws for each gradient are counted on a part of the data, and its gradients timed on all of
    them, without anything else that NUTS does.
    """
    problem, part = own_counts(num_examples), own_counts(num_counted)
    ours = once(problem.name, partial(our_draws, problem))
    counted = once(("NUTS", part.name), partial(nuts_draws, part, COUNTING * seconds))
    check_draws_agree(once(part.name, partial(our_draws, part)), counted, "NUTS")
    each = _gradient_seconds(problem)
    theirs = counted.num_effective / counted.sampling_gradients / each
    return Measurement(
        ours.per_second / theirs,
        ours.setup_seconds,
        f"{ours.per_second:,.0f} and {theirs:,.2f} effective draws/s "
        f"({counted.num_effective / counted.sampling_gradients:.2f} for a gradient of "
        f"{NUTS_CHAINS} chains, {1e3 * each:.0f} ms)",
    )


def _gradient_seconds(problem: BenchmarkPosterior) -> float:
    """Of all chains side by side at the mode, the fastest of a few."""
    target, data = problem.target(), problem.data()
    mode = trees.flatten(find_mode(target, target.init).position)
    positions = jnp.stack([mode] * NUTS_CHAINS)
    gradients = jax.jit(
        jax.vmap(jax.value_and_grad(problem.log_density), in_axes=(0, *[None] * len(data)))
    )
    found = []
    for _ in range(FEWEST_GRADIENTS + 1):
        start = time.perf_counter()
        jax.block_until_ready(gradients(positions, *data))
        found.append(time.perf_counter() - start)
    return min(found[1:])
