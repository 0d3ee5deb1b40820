"""Effective draws per second of `amagold.sample`, divided by those of a peer's sampler on the same
posterior.
"""

import time
import warnings
from collections.abc import Callable
from functools import partial

import jax
import numpy as np

from amagold.sampling._sample import sample
from amagold_lab.bench import benchmark_posteriors, hmcecs, peers
from amagold_lab.bench.benchmark_posteriors import BenchmarkPosterior
from amagold_lab.bench.effective_sample_size import TimedDraws, check_draws_agree
from amagold_lab.bench.measure import Measurement, in_turns

NUM_CHAINS = 64
NUTS_CHAINS = 4  # vectorised: reading the data once serves them all
NUTS_WARMUP = 150  # whitened, it has nothing but a step size to find
ORDINARY_WARMUP = 1_000  # as NUTS's users have it
COUNTING = 0.1  # of the usual time for draws: on a part of the data that is plenty
NUTS_SECONDS = 60.0  # of draws after warm-up, for every second that a row is given
WANTED = 1_000  # effective draws from nothing
MOST_TURNS = 5

_known: dict[object, TimedDraws] = {}


def once(key: object, make: Callable[[], TimedDraws]) -> TimedDraws:
    """Draws that several rows compare, made by the first of them, as in a process that has compiled
    nothing.
    """
    if key not in _known:
        jax.clear_caches()
        _known[key] = make()
    return _known[key]


def our_draws(
    problem: BenchmarkPosterior,
    num_samples: int = 1_000,
    num_chains: int = NUM_CHAINS,
    seed: int = 0,
) -> TimedDraws:
    """What a user gets who asks for draws and says nothing else; plan, mode, Hessian, compilation
    and warm-up are its setup.
    """
    problem.target()  # makes the table, which is the user's own work
    start = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what is wrong shows in the effective draws
        run = sample(
            problem.target(),
            num_samples=num_samples,
            num_chains=num_chains,
            seed=seed,
            progress=False,
        )
    total = time.perf_counter() - start
    leaves = [leaf.to_numpy() for leaf in run.posterior.data_vars.values()]
    values = np.concatenate([leaf.reshape(*leaf.shape[:2], -1) for leaf in leaves], axis=2)
    return TimedDraws(values, total - run.sampling_seconds, run.sampling_seconds)


def nuts_draws(problem: BenchmarkPosterior, seconds: float) -> TimedDraws:
    """NUTS with the Laplace approximation's covariance as its dense inverse mass, which is more
    than a user would know beforehand.
    """
    return peers.numpyro_nuts(
        problem, NUTS_CHAINS, NUTS_WARMUP, NUTS_SECONDS * seconds, whitened=True
    )


def ordinary_nuts_draws(problem: BenchmarkPosterior, seconds: float) -> TimedDraws:
    """NUTS as it comes: from where NumPyro starts it, with the mass and the step size that it finds
    in a warm-up of the usual length.
    """
    return peers.numpyro_nuts(
        problem,
        NUTS_CHAINS,
        ORDINARY_WARMUP,
        NUTS_SECONDS * seconds,
        whitened=False,
        from_mode=False,
    )


def our_and_nuts_draws(
    title: str, problem: BenchmarkPosterior, seconds: float
) -> tuple[TimedDraws, TimedDraws]:
    """Our draws, by our way of writing the problem, and NUTS's, which know no such ways; they
    agree.
    """
    ours = once(title, partial(our_draws, problem))
    theirs = once(("NUTS", problem.name, seconds), partial(nuts_draws, problem, seconds))
    check_draws_agree(ours, theirs, "NUTS")
    return ours, theirs


def rates(ours: TimedDraws, theirs: TimedDraws) -> Measurement:
    """The ratio of effective draws per second after warm-up."""
    found, other = ours.per_second, theirs.per_second
    return Measurement(
        found / other, ours.setup_seconds, f"{found:,.0f} and {other:,.2f} effective draws/s"
    )


def measure_rate(title: str, problem: BenchmarkPosterior, seconds: float) -> Measurement:
    return rates(*our_and_nuts_draws(title, problem, seconds))


def measure_from_nothing(title: str, problem: BenchmarkPosterior, seconds: float) -> Measurement:
    """Seconds to the wanted effective draws, setup included; the draws of both are extrapolated at
    their measured rates.
    """
    ours, theirs = (side.seconds_to(WANTED) for side in our_and_nuts_draws(title, problem, seconds))
    return Measurement(theirs / ours, details=f"{ours:,.1f} s and {theirs:,.0f} s")


def measure_from_nothing_as_it_comes(
    title: str, problem: BenchmarkPosterior, part: BenchmarkPosterior, seconds: float
) -> Measurement:
    """The same against NUTS as it comes: its gradients are counted on a part of the data, and timed
    on all of them.

    In posterior standard deviations its start is nearer there, so that it is counted too few, if
    anything.
    """
    ours, timed = our_and_nuts_draws(title, problem, seconds)
    each = timed.sampling_seconds / timed.sampling_gradients
    counted = once(("NUTS as it comes", part.name), partial(ordinary_nuts_draws, part, COUNTING))
    needed = counted.setup_gradients + WANTED * counted.sampling_gradients / counted.num_effective
    here, there = ours.seconds_to(WANTED), needed * each
    return Measurement(
        there / here,
        details=f"{here:,.1f} s and {there:,.0f} s ({needed:,.0f} gradients of {1e3 * each:.0f} "
        "ms)",
    )


def measure_growth(few: int, many: int, num_parameters: int, seconds: float) -> Measurement:
    """Our rate with many examples over that with few."""
    found = [
        once(
            f"logistic {number}",
            partial(our_draws, benchmark_posteriors.logistic(number, num_parameters)),
        ).per_second
        for number in (few, many)
    ]
    return Measurement(
        found[1] / found[0], details=f"{found[1]:,.0f} and {found[0]:,.0f} effective draws/s"
    )


def measure_small(
    problem: BenchmarkPosterior, num_chains: int, num_samples: int, seconds: float
) -> Measurement:
    """Our rate over that of the better NUTS, with as many chains each, several times in turns."""
    seeds = iter(range(1_000))

    def ours() -> TimedDraws:
        return our_draws(problem, num_samples, num_chains, next(seeds))

    def theirs() -> TimedDraws:
        return peers.better_nuts(problem, num_chains, num_samples, next(seeds))

    one, other = ours(), theirs()
    check_draws_agree(one, other, "NUTS")
    best, best_other = np.max(
        in_turns(lambda: ours().per_second, lambda: theirs().per_second, seconds, MOST_TURNS),
        axis=0,
    )
    return Measurement(
        float(best / best_other),
        one.setup_seconds,
        f"{best:,.0f} and {best_other:,.0f} effective draws/s",
    )


def measure_hmcecs(num_examples: int, num_parameters: int, seconds: float) -> Measurement:
    """Our rate over that of NumPyro's HMCECS, one chain of which is counted once for every core."""
    problem = benchmark_posteriors.logistic(num_examples, num_parameters)
    ours = once(f"logistic {num_examples} x {num_parameters}", partial(our_draws, problem))
    theirs = hmcecs.draws(problem, NUTS_SECONDS * seconds)
    check_draws_agree(ours, theirs, "HMCECS")
    return rates(
        ours, theirs._replace(sampling_seconds=theirs.sampling_seconds / jax.local_device_count())
    )
