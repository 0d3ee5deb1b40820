"""Posteriors without rows to save: our effective draws per gradient, and per second, over those of
a peer, as a geometric mean over the hard set.
"""

import math
import time
import warnings
from collections.abc import Callable
from functools import cache, partial

import jax
import jax.numpy as jnp
import numpy as np

from amagold.sampling._sample import sample
from amagold.target import Density
from amagold_lab.bench import hard_peers
from amagold_lab.bench.effective_sample_size import TOLERATED_ERRORS, largest_difference
from amagold_lab.bench.hard_models import HARD_MODELS, HardModel, flat_density
from amagold_lab.bench.hard_peers import NUM_CHAINS, NUM_SAMPLES, NUM_TURNS, CountedDraws
from amagold_lab.bench.measure import Benchmark, Measurement

SEED = 0
WANTED = 1.5  # the geometric mean; no single one should be below 0.7
PEERS = {
    "numpyro": "NumPyro's NUTS",
    "blackjax": "BlackJAX's NUTS",
    "nutpie": "nutpie's NUTS",
    "mams": "BlackJAX's MAMS",
}


@cache
def our_draws(make: Callable[[], HardModel]) -> CountedDraws:
    """What a user gets who asks for draws and says nothing else."""
    density = flat_density(make())
    target = Density(density.log_density, init=jnp.zeros(density.num_parameters))
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is wrong shows in the effective draws
        run = sample(
            target, NUM_TURNS * NUM_SAMPLES, num_chains=NUM_CHAINS, seed=SEED, progress=False
        )
    setup = time.perf_counter() - began - run.sampling_seconds
    (values,) = (leaf.to_numpy() for leaf in run.posterior.data_vars.values())
    gradients = float(run.sample_stats["n_steps"].sum())
    return CountedDraws(np.split(values, NUM_TURNS, axis=1), run.sampling_seconds, gradients, setup)


@cache
def their_draws(peer: str, make: Callable[[], HardModel]) -> CountedDraws:
    jax.clear_caches()
    return hard_peers.PEERS[peer](flat_density(make()), SEED)


def measure(peer: str, is_timed: bool, seconds: float) -> Measurement:
    """The geometric mean, and each ratio beside its model; `seconds` has no say in it."""
    words, logs = [], []
    for make in HARD_MODELS:
        theirs, ours = their_draws(peer, make), our_draws(make)
        found = [
            side.num_effective / (side.seconds if is_timed else side.gradients)
            for side in (ours, theirs)
        ]
        errors = largest_difference(*(np.concatenate(side.turns, 1) for side in (ours, theirs)))
        doubt = "" if errors <= TOLERATED_ERRORS else f", {errors:.0f} errors apart"
        logs.append(math.log(found[0] / found[1]))
        words.append(f"{make().name} {found[0] / found[1]:.2f} ({found[0]:.3g}{doubt})")
    return Measurement(math.exp(sum(logs) / len(logs)), details="; ".join(words))


HARD_BENCHMARKS = tuple(
    Benchmark(
        f"hard-{name}{'-seconds' if is_timed else ''}",
        f"effective draws per {'second' if is_timed else 'gradient'} after warm-up of sample() / "
        f"of {peer}, 4 chains each: the geometric mean over six posteriors without rows to save",
        WANTED,
        True,
        partial(measure, peer, is_timed),
        is_long=True,
    )
    for name, peer in PEERS.items()
    for is_timed in (False, True)
)
