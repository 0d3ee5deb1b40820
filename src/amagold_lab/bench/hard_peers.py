"""The peers that run on JAX, on the hard set: NUTS of NumPyro and BlackJAX, and BlackJAX's MAMS,
each as it comes, on one log density over one vector.
"""

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import numpy as np

from amagold.sampling._compile_time import watch_compilation
from amagold_lab.bench.effective_sample_size import effective_draws
from amagold_lab.bench.hard_models import FlatDensity
from amagold_lab.bench.peers import require

NUM_CHAINS, NUM_WARMUP, NUM_SAMPLES = 4, 1_000, 3_000  # chains and warm-up as users have them
START = 2.0  # chains start uniformly within this distance of zero, as NumPyro's and Stan's do
# MAMS: transitions that the tuning is told will follow, three parts of which it takes for itself
TUNED_FOR = NUM_WARMUP * 10 // 3
MAMS_ACCEPTANCE = 0.9  # as in BlackJAX's own pages
GRADIENTS_PER_STEP = 2  # of McLachlan's integrator, which MAMS has


class CountedDraws(NamedTuple):
    """Draws with axes (chain, draw, coordinate), the processor time and the gradients of all chains
    together, and the wall time of what came before, compilation apart.

    Processor time, because a busy machine would have a say in any other; nobody gains by drawing
    on several cores.
    """

    values: np.ndarray
    seconds: float
    gradients: float
    setup_seconds: float = 0.0
    compile_seconds: float = 0.0

    @property
    def num_effective(self) -> float:
        """Of the worst coordinate or squared coordinate."""
        return effective_draws(self.values)


def starts(density: FlatDensity, seed: int) -> jax.Array:
    shape = (NUM_CHAINS, density.num_parameters)
    return jax.random.uniform(jax.random.key(seed), shape, minval=-START, maxval=START)


def timed(adapt: Callable[[], Any], draw: Callable[[Any], tuple[Any, Any, Any]]) -> CountedDraws:
    """Warm-up, and then draws twice, of which the first time compiles: `draw` goes from a state to
    the next, the draws and their gradients.
    """
    began = time.perf_counter()
    with watch_compilation() as compiling:
        state = jax.block_until_ready(adapt())
        setup = time.perf_counter() - began
        in_setup = compiling.seconds
        state, _, _ = jax.block_until_ready(draw(state))
    began = time.process_time()
    _, values, gradients = jax.block_until_ready(draw(state))
    spent = time.process_time() - began
    return CountedDraws(
        np.asarray(values), spent, float(gradients), setup - in_setup, compiling.seconds
    )


def numpyro_nuts(density: FlatDensity, seed: int) -> CountedDraws:
    """Chains vectorised, each with a mass and a step size of its own, as NumPyro's driver does."""
    require("numpyro")
    from numpyro.infer import NUTS

    kernel: Any = NUTS(potential_fn=lambda position: -density.log_density(position))
    keys = jax.random.split(jax.random.PRNGKey(seed), NUM_CHAINS)

    def adapt() -> Any:
        state = kernel.init(keys, NUM_WARMUP, starts(density, seed), (), {})
        # the chains are a batch in the kernel itself, so that all is one program
        return _repeat(kernel, state, NUM_WARMUP)[0]

    def draw(state: Any) -> tuple[Any, Any, Any]:
        state, (positions, steps) = _repeat(kernel, state, NUM_SAMPLES)
        return state, positions.swapaxes(0, 1), steps.sum()

    return timed(adapt, draw)


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
        return state, kept

    def draw(key: jax.Array, state: Any, settings: Any) -> Any:
        kernel = blackjax.nuts(density.log_density, **settings)

        def step(state: Any, key: jax.Array) -> Any:
            state, info = kernel.step(key, state)
            return state, (state.position, info.num_integration_steps)

        return jax.lax.scan(step, state, jax.random.split(key, NUM_SAMPLES))

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

    def draw(key: jax.Array, state: Any, settings: Any) -> Any:
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

        return jax.lax.scan(step, state, jax.random.split(key, NUM_SAMPLES))

    return _spread(density, seed, adapt, draw)


def _spread(density: FlatDensity, seed: int, adapt: Any, draw: Any) -> CountedDraws:
    """Both on chains side by side, on as many devices as divide them."""
    devices = jax.local_device_count() if NUM_CHAINS % jax.local_device_count() == 0 else 1

    def by_device(tree: Any) -> Any:
        return jax.tree.map(lambda leaf: leaf.reshape(devices, -1, *leaf.shape[1:]), tree)

    key = jax.random.key(seed)
    program = jax.pmap(jax.vmap(draw))

    def warmed() -> Any:
        keys = by_device(jax.random.split(key, NUM_CHAINS))
        return 0, *jax.pmap(jax.vmap(adapt))(keys, by_device(starts(density, seed)))

    def turn(reached: Any) -> tuple[Any, Any, Any]:
        number, state, settings = reached
        keys = by_device(jax.random.split(jax.random.fold_in(key, number + 1), NUM_CHAINS))
        state, (values, steps) = program(keys, state, settings)
        values = values.reshape(NUM_CHAINS, NUM_SAMPLES, -1)
        return (number + 1, state, settings), values, steps.sum()

    return timed(warmed, turn)
