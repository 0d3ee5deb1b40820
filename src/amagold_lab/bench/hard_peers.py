"""The peers on the hard set: NUTS of NumPyro, BlackJAX and nutpie, and BlackJAX's MAMS, each as it
comes, on one log density over one vector.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold_lab.bench.effective_sample_size import effective_draws
from amagold_lab.bench.hard_models import FlatDensity
from amagold_lab.bench.peers import require

NUM_CHAINS, NUM_WARMUP, NUM_SAMPLES = 4, 1_000, 1_000  # as users have them by default
NUM_TURNS = 3  # of so many draws: their effective draws and their time are added up
START = 2.0  # chains start uniformly within this distance of zero, as NumPyro's and Stan's do
# MAMS: transitions that the tuning is told will follow, three parts of which it takes for itself
TUNED_FOR = NUM_WARMUP * 10 // 3
MAMS_ACCEPTANCE = 0.9  # as in BlackJAX's own pages
GRADIENTS_PER_STEP = 2  # of McLachlan's integrator, which MAMS has


class CountedDraws(NamedTuple):
    """Turns of draws with axes (chain, draw, coordinate), their wall time, and the gradients of
    all chains together.
    """

    turns: list[np.ndarray]
    seconds: float
    gradients: float
    setup_seconds: float = 0.0

    @property
    def num_effective(self) -> float:
        """Of the worst coordinate or squared coordinate, turn by turn."""
        return sum(effective_draws(values) for values in self.turns)


def starts(density: FlatDensity, seed: int) -> jax.Array:
    shape = (NUM_CHAINS, density.num_parameters)
    return jax.random.uniform(jax.random.key(seed), shape, minval=-START, maxval=START)


def timed(draw: Callable[[int], tuple[Any, Any]], setup: float) -> CountedDraws:
    """Draws turn by turn, after one that compiles."""
    began = time.perf_counter()
    jax.block_until_ready(draw(0))
    setup += time.perf_counter() - began
    began = time.perf_counter()
    found = [jax.block_until_ready(draw(turn + 1)) for turn in range(NUM_TURNS)]
    spent = time.perf_counter() - began
    gradients = sum(float(steps) for _, steps in found)
    return CountedDraws([np.asarray(values) for values, _ in found], spent, gradients, setup)


def numpyro_nuts(density: FlatDensity, seed: int) -> CountedDraws:
    """Chains vectorised, each with a mass and a step size of its own, as NumPyro's driver does."""
    require("numpyro")
    from numpyro.infer import NUTS

    kernel: Any = NUTS(potential_fn=lambda position: -density.log_density(position))
    keys = jax.random.split(jax.random.PRNGKey(seed), NUM_CHAINS)
    began = time.perf_counter()
    state = kernel.init(keys, NUM_WARMUP, starts(density, seed), (), {})
    # the chains are a batch in the kernel itself, so that all is one program
    state = jax.block_until_ready(_repeat(kernel, state, NUM_WARMUP)[0])
    setup = time.perf_counter() - began
    held = [state]

    def draw(turn: int) -> tuple[Any, Any]:
        held[0], (positions, steps) = _repeat(kernel, held[0], NUM_SAMPLES)
        return positions.swapaxes(0, 1), steps.sum()

    return timed(draw, setup)


def _repeat(kernel: Any, state: Any, count: int) -> Any:
    programs = kernel.__dict__.setdefault("_programs", {})
    if count not in programs:

        def step(state: Any, _: None) -> Any:
            state = kernel.sample(state, (), {})
            return state, (state.z, state.num_steps)

        programs[count] = jax.jit(lambda state: jax.lax.scan(step, state, None, count))
    return programs[count](state)


def blackjax_nuts(density: FlatDensity, seed: int) -> CountedDraws:
    """Window adaptation and draws of each chain, spread over all devices."""
    blackjax = require("blackjax")
    adaptation = blackjax.window_adaptation(blackjax.nuts, density.log_density)

    def adapt(key: jax.Array, position: jax.Array) -> Any:
        (state, settings), _ = adaptation.run(key, position, NUM_WARMUP)
        kept = {name: settings[name] for name in ("step_size", "inverse_mass_matrix")}
        return state.position, kept

    def draw(key: jax.Array, adapted: Any) -> Any:
        position, settings = adapted
        kernel = blackjax.nuts(density.log_density, **settings)

        def step(state: Any, key: jax.Array) -> Any:
            state, info = kernel.step(key, state)
            return state, (state.position, info.num_integration_steps)

        return jax.lax.scan(step, kernel.init(position), jax.random.split(key, NUM_SAMPLES))[1]

    return _spread(density, seed, adapt, draw)


def blackjax_mams(density: FlatDensity, seed: int) -> CountedDraws:
    """Tuning and draws of each chain, spread over all devices."""
    blackjax = require("blackjax")
    from blackjax.mcmc.adjusted_mclmc_dynamic import (
        build_kernel,
        init,
        make_random_trajectory_length_fn,
    )

    kernel = build_kernel(integration_steps_fn=make_random_trajectory_length_fn(True))

    def adapt(key: jax.Array, position: jax.Array) -> Any:
        first, second = jax.random.split(key)
        state = init(position, density.log_density, first)
        state, settings, _ = blackjax.adjusted_mclmc_find_L_and_step_size(
            mclmc_kernel=kernel,
            logdensity_fn=density.log_density,
            num_steps=TUNED_FOR,
            state=state,
            rng_key=second,
            target=MAMS_ACCEPTANCE,
        )
        return state, settings

    def draw(key: jax.Array, adapted: Any) -> Any:
        state, settings = adapted

        def step(state: Any, key: jax.Array) -> Any:
            state, info = kernel(
                rng_key=key,
                state=state,
                logdensity_fn=density.log_density,
                step_size=settings.step_size,
                inverse_mass_matrix=settings.inverse_mass_matrix,
                integration_steps_params=(settings.L / settings.step_size,),
            )
            return state, (state.position, GRADIENTS_PER_STEP * info.num_integration_steps)

        return jax.lax.scan(step, state, jax.random.split(key, NUM_SAMPLES))[1]

    return _spread(density, seed, adapt, draw)


def _spread(density: FlatDensity, seed: int, adapt: Any, draw: Any) -> CountedDraws:
    """Both on chains side by side, on as many devices as divide them."""
    devices = jax.local_device_count() if NUM_CHAINS % jax.local_device_count() == 0 else 1

    def by_device(tree: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf.reshape(devices, -1, *leaf.shape[1:]), tree)

    key = jax.random.key(seed)
    began = time.perf_counter()
    places = by_device(starts(density, seed))
    keys = by_device(jax.random.split(key, NUM_CHAINS))
    adapted = jax.block_until_ready(jax.pmap(jax.vmap(adapt))(keys, places))
    setup = time.perf_counter() - began
    program = jax.pmap(jax.vmap(draw))

    def turn(number: int) -> tuple[Any, Any]:
        keys = by_device(jax.random.split(jax.random.fold_in(key, number + 1), NUM_CHAINS))
        values, steps = program(keys, adapted)
        return values.reshape(NUM_CHAINS, NUM_SAMPLES, -1), steps.sum()

    return timed(turn, setup)


def nutpie_nuts(density: FlatDensity, seed: int) -> CountedDraws:
    """Its own driver, on gradients that it asks Python for; draws take their share of the time, as
    of the gradients.
    """
    nutpie = require("nutpie")
    from nutpie.compiled_pyfunc import from_pyfunc  # pyright: ignore[reportMissingImports]

    both = jax.jit(jax.value_and_grad(density.log_density))
    generator = np.random.default_rng(seed)

    def make_density() -> Any:
        def evaluate(position: np.ndarray) -> tuple[float, np.ndarray]:
            value, gradient = both(jnp.asarray(position, jnp.float32))
            return float(value), np.asarray(gradient, np.float64)

        return evaluate

    def make_expand(*unused: Any) -> Any:
        return lambda position: {"position": np.asarray(position, np.float64)}

    size = density.num_parameters
    both(jnp.zeros(size))
    model = from_pyfunc(
        size,
        make_density,
        make_expand,
        [np.dtype(np.float64)],
        [(size,)],
        ["position"],
        make_initial_point_fn=lambda seed: generator.uniform(-START, START, size),
    )
    began = time.perf_counter()
    trace = nutpie.sample(
        model,
        draws=NUM_SAMPLES,
        tune=NUM_WARMUP,
        chains=NUM_CHAINS,
        cores=1,  # two would wait for each other's Python
        seed=seed,
        progress_bar=False,
        save_warmup=True,
    )
    seconds = time.perf_counter() - began
    before, after = (
        float(group["n_steps"].sum()) for group in (trace.warmup_sample_stats, trace.sample_stats)
    )
    share = after / (before + after)
    values = trace.posterior["position"].to_numpy()
    return CountedDraws([values], share * seconds, after, (1.0 - share) * seconds)


PEERS: dict[str, Callable[[FlatDensity, int], CountedDraws]] = {
    "NumPyro's NUTS": numpyro_nuts,
    "BlackJAX's NUTS": blackjax_nuts,
    "nutpie's NUTS": nutpie_nuts,
    "BlackJAX's MAMS": blackjax_mams,
}
