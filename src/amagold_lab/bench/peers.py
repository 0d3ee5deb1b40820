"""The peers' samplers at their best: NUTS of NumPyro and of BlackJAX, on any of the problems."""

import time
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from amagold.core import trees
from amagold.mode._curvature import curvature_at
from amagold.mode._mode_search import find_mode
from amagold_lab.bench.benchmark_posteriors import BenchmarkPosterior
from amagold_lab.bench.effective_sample_size import TimedDraws
from amagold_lab.bench.measure import NoRatioError

# draws of each chain: the smallest of many effective sample sizes is far too small on few draws
FEWEST = 500
PATIENCE = 10.0  # times the given time, after which even fewer must do


def require(name: str, extra: str = "peers") -> Any:
    """The peer's package."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise NoRatioError(f"needs {name}: pip install 'amagold[{extra}]'") from None


def mode_and_covariance(problem: BenchmarkPosterior) -> tuple[np.ndarray, np.ndarray]:
    """The mode and the inverse Hessian there: what NUTS starts from, free of charge."""
    target = problem.target()
    mode = find_mode(target, target.init).position
    factor = curvature_at(target, mode).factor
    return np.asarray(trees.flatten(mode)), factor @ factor.T


def numpyro_nuts(
    problem: BenchmarkPosterior,
    num_chains: int,
    num_warmup: int,
    seconds: float,
    *,
    whitened: bool,
    from_mode: bool = True,
    block: int = 10,
    seed: int = 0,
) -> TimedDraws:
    """NumPyro's NUTS: warm-up, then draws of all chains side by side until the time is up.

    Args:
      problem: what to sample from.
      num_chains: chains, vectorised.
      num_warmup: warm-up transitions of each chain.
      seconds: for the draws after warm-up.
      whitened: give it the Laplace approximation's covariance as its dense inverse mass, for good;
        else it adapts a diagonal, its default.
      from_mode: start all chains at the mode; else where NumPyro starts them.
      block: draws between two looks at the clock.
      seed: of its random numbers.
    """
    require("numpyro")
    import numpyro
    from numpyro.distributions import ImproperUniform, constraints
    from numpyro.infer import NUTS, init_to_uniform, init_to_value

    mode, covariance = mode_and_covariance(problem)
    log_density = problem.log_density
    start = init_to_value(values={"position": jnp.asarray(mode)}) if from_mode else init_to_uniform

    def model(*data: Any) -> None:
        position = numpyro.sample(
            "position", ImproperUniform(constraints.real_vector, (), mode.shape)
        )
        numpyro.factor("log_density", log_density(position, *data))

    given = {
        "dense_mass": True,
        "inverse_mass_matrix": jnp.asarray(covariance, jnp.float32),
        "adapt_mass_matrix": False,
    }
    kernel = NUTS(model, init_strategy=start, **(given if whitened else {}))
    return run_kernel(kernel, problem.data(), num_chains, num_warmup, seconds, block, seed)


def run_kernel(
    kernel: Any,
    data: tuple[Any, ...],
    num_chains: int,
    num_warmup: int,
    seconds: float,
    block: int,
    seed: int,
) -> TimedDraws:
    """Draws of a NumPyro kernel: as its own driver makes them, but a block at a time from one
    compiled loop, with an eye on the clock.
    """

    @jax.jit
    def advance(state: Any, data: tuple[Any, ...]) -> tuple[Any, jax.Array, jax.Array]:
        def step(state: Any, _: None) -> tuple[Any, tuple[jax.Array, jax.Array]]:
            state = kernel.sample(state, data, {})
            # chains side by side wait for the one that takes the most steps
            return state, (state.z["position"], jnp.max(getattr(state, "num_steps", jnp.int32(0))))

        state, (positions, num_steps) = jax.lax.scan(step, state, None, block)
        return state, positions, num_steps.sum()

    keys = jax.random.split(jax.random.PRNGKey(seed), num_chains)
    start = time.perf_counter()
    state = kernel.init(keys[0] if num_chains == 1 else keys, num_warmup, None, data, {})
    gradients = [0, 0]  # of the warm-up, and of the draws
    # one block more than the warm-up needs, so that all is compiled before the clock of the draws
    # starts
    for _ in range(-(-num_warmup // block) + 1):
        state, _, taken = jax.block_until_ready(advance(state, data))
        gradients[0] += int(taken)
    setup, spent, kept = time.perf_counter() - start, 0.0, []
    while spent < seconds or (len(kept) * block < FEWEST and spent < PATIENCE * seconds):
        state, positions, taken = jax.block_until_ready(advance(state, data))
        kept.append(np.asarray(positions).reshape(block, num_chains, -1).swapaxes(0, 1))
        gradients[1] += int(taken)
        spent = time.perf_counter() - start - setup
    return TimedDraws(np.concatenate(kept, axis=1), setup, spent, *gradients)


def better_nuts(
    problem: BenchmarkPosterior, num_chains: int, num_samples: int, seed: int
) -> TimedDraws:
    """Of NumPyro and BlackJAX, on a problem where thousands of draws take seconds."""
    found = [
        blackjax_nuts(problem, num_chains, 1_000, num_samples, seed),
        numpyro_nuts(problem, num_chains, 1_000, 1.0, whitened=False, block=100, seed=seed),
    ]
    return max(found, key=lambda draws: draws.per_second)


def blackjax_nuts(
    problem: BenchmarkPosterior, num_chains: int, num_warmup: int, num_samples: int, seed: int = 0
) -> TimedDraws:
    """BlackJAX's NUTS: one chain's window adaptation for all, then chains vectorised and spread
    over all devices.
    """
    blackjax = require("blackjax")
    mode, _ = mode_and_covariance(problem)
    data = problem.data()
    warmup_key, key = jax.random.split(jax.random.key(seed))
    devices = jax.local_device_count() if num_chains % jax.local_device_count() == 0 else 1

    def sampler(data: Any, **settings: Any) -> Any:
        return blackjax.nuts(lambda position: problem.log_density(position, *data), **settings)

    @jax.jit
    def adapt(key: jax.Array, data: Any) -> Any:
        adaptation = blackjax.window_adaptation(
            blackjax.nuts, lambda position: problem.log_density(position, *data)
        )
        (state, settings), _ = adaptation.run(key, jnp.asarray(mode), num_warmup)
        return state.position, {
            "step_size": settings["step_size"],
            "inverse_mass_matrix": settings["inverse_mass_matrix"],
        }

    def chain(key: jax.Array, position: jax.Array, settings: Any, data: Any) -> jax.Array:
        kernel = sampler(data, **settings)

        def step(state: Any, key: jax.Array) -> tuple[Any, jax.Array]:
            state, _ = kernel.step(key, state)
            return state, state.position

        return jax.lax.scan(step, kernel.init(position), jax.random.split(key, num_samples))[1]

    spread = jax.pmap(jax.vmap(chain, in_axes=(0, None, None, None)), in_axes=(0, None, None, None))

    def draw(key: jax.Array, position: jax.Array, settings: Any) -> jax.Array:
        keys = jax.random.split(key, num_chains).reshape(devices, num_chains // devices)
        return jax.block_until_ready(spread(keys, position, settings, data))

    start = time.perf_counter()
    position, settings = adapt(warmup_key, data)
    draw(key, position, settings)
    setup = time.perf_counter() - start
    values = draw(jax.random.fold_in(key, 1), position, settings)
    return TimedDraws(
        np.asarray(values).reshape(num_chains, num_samples, -1),
        setup,
        time.perf_counter() - start - setup,
    )
