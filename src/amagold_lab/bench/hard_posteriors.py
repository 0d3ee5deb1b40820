"""Posteriors without rows to save: our effective draws per gradient, and per second, over those of
a peer, as a geometric mean over the hard set.
"""

import math
import warnings
from collections.abc import Callable
from functools import cache, partial
from statistics import median
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from amagold.runner import run_chains
from amagold.sampling._sample import sample
from amagold.target import Density
from amagold_lab.bench import hard_peers
from amagold_lab.bench.effective_sample_size import TOLERATED_ERRORS, largest_difference
from amagold_lab.bench.hard_models import HARD_MODELS, FlatDensity, HardModel, flat_density
from amagold_lab.bench.hard_nutpie import nutpie_nuts
from amagold_lab.bench.hard_peers import NUM_CHAINS, NUM_SAMPLES, CountedDraws
from amagold_lab.bench.measure import Benchmark, Measurement

SEEDS = (0, 1, 2)  # the median of the ratios counts: a chain may be lost, on either side
FEW = 100  # draws of the call that plans and warms up
WANTED = 1.5  # the geometric mean
LOWEST = 0.7  # of any single posterior, below which the row says so


class HardPeer(NamedTuple):
    """What it is called, and what it draws of a model with a seed."""

    words: str
    draw: Callable[[Callable[[], HardModel], int], CountedDraws]


def on_density(
    draw: Callable[[FlatDensity, int], CountedDraws],
) -> Callable[[Callable[[], HardModel], int], CountedDraws]:
    """A peer that takes the log density as it is here."""

    def draw_model(make: Callable[[], HardModel], seed: int) -> CountedDraws:
        jax.clear_caches()
        return draw(flat_density(make()), seed)

    return draw_model


PEERS = {
    "numpyro": HardPeer("NumPyro's NUTS", on_density(hard_peers.numpyro_nuts)),
    "blackjax": HardPeer("BlackJAX's NUTS", on_density(hard_peers.blackjax_nuts)),
    "nutpie": HardPeer("nutpie's NUTS", nutpie_nuts),
    "mams": HardPeer("BlackJAX's MAMS", on_density(hard_peers.blackjax_mams)),
}


@cache
def our_draws(make: Callable[[], HardModel], seed: int) -> CountedDraws:
    """What a user gets who asks for draws and says nothing else."""
    density = flat_density(make())
    target = Density(density.log_density, init=jnp.zeros(density.num_parameters))

    def adapt() -> Any:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what is wrong shows in the effective draws
            run = sample(target, FEW, num_chains=NUM_CHAINS, seed=seed, progress=False)
        held.append(run.sampler)
        return 0, run.positions

    def draw(reached: Any) -> tuple[Any, Any, Any]:
        (number, positions), sampler = reached, held[0]
        key = jax.random.fold_in(jax.random.key(seed), number)
        values = np.asarray(run_chains(sampler, key, positions, NUM_SAMPLES).position)
        steps = sampler.num_gradients(positions[0]) * NUM_CHAINS * NUM_SAMPLES
        return (number + 1, values[:, -1]), values, steps

    held: list[Any] = []
    return hard_peers.timed(adapt, draw)


@cache
def their_draws(peer: str, make: Callable[[], HardModel], seed: int) -> CountedDraws:
    return PEERS[peer].draw(make, seed)


def measure(peer: str, is_timed: bool, seconds: float) -> Measurement:
    """The geometric mean, and each median beside its model; `seconds` has no say in it."""
    words, medians, spent = [], [], np.zeros((2, 2))
    for make in HARD_MODELS:
        ratios, apart = [], 0
        for seed in SEEDS:
            # theirs first: a peer that is not installed ends it here
            theirs, ours = their_draws(peer, make, seed), our_draws(make, seed)
            rates = [
                side.num_effective / (side.seconds if is_timed else side.gradients)
                for side in (ours, theirs)
            ]
            ratios.append(rates[0] / rates[1])
            apart += not largest_difference(ours.values, theirs.values) <= TOLERATED_ERRORS
            if seed == SEEDS[0]:  # later ones may find programs compiled
                spent += [[side.setup_seconds, side.compile_seconds] for side in (ours, theirs)]
        medians.append(median(ratios))
        low = f", below {LOWEST}" if medians[-1] < LOWEST else ""
        doubt = f", {apart} of {len(SEEDS)} not the same within errors" if apart else ""
        words.append(
            f"{make().name} {medians[-1]:.2f} ({min(ratios):.2f} to {max(ratios):.2f}{low}{doubt})"
        )
    (setup, compiled), (their_setup, their_compiled) = spent
    words.append(
        f"all six before the draws: {setup:.0f} s and {compiled:.0f} s of compilation here, "
        f"{their_setup:.0f} s and {their_compiled:.0f} s there"
    )
    mean = math.exp(sum(map(math.log, medians)) / len(medians))
    return Measurement(mean, float(compiled), "; ".join(words))


HARD_BENCHMARKS = tuple(
    Benchmark(
        f"hard-{name}{'-seconds' if is_timed else ''}",
        f"effective draws per {'second of a core' if is_timed else 'gradient'} after warm-up, of "
        f"sample() / of {peer.words}, 4 chains each: the median of three seeds, as a geometric "
        "mean over six posteriors without rows to save",
        WANTED,
        True,
        partial(measure, name, is_timed),
        is_long=True,
    )
    for name, peer in PEERS.items()
    for is_timed in (False, True)
)
