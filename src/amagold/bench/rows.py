"""Every benchmark, in the order of the table. Add one by adding a row."""

from functools import partial

from amagold.bench import dist1, double_well, logistic, memory, network, startup, whole_run
from amagold.bench.measure import Benchmark

BENCHMARKS = (
    Benchmark(
        "double-well-1024",
        "leapfrog steps/s of 1,024 chains on all cores / of a plain C loop on one core",
        0.5,
        True,
        partial(double_well.measure, 1024, 400),
    ),
    Benchmark(
        "double-well-1",
        "leapfrog steps/s of one chain / of the same C loop",
        0.15,
        True,
        partial(double_well.measure, 1, 100_000),
    ),
    Benchmark(
        "dist1",
        "leapfrog steps/s of 64 chains on Dist1, on all cores / of a plain C loop on one core",
        1 / 3,
        True,
        partial(dist1.measure, 64, 10_000),
    ),
    Benchmark(
        "logistic-64",
        "leapfrog steps/s of 64 chains on all cores / of a plain C loop on one core: 690 x 15, batch 32, full test",
        0.5,
        True,
        partial(logistic.measure, 64, 400),
    ),
    Benchmark(
        "logistic-1",
        "leapfrog steps/s of one chain / of the same C loop",
        0.2,
        True,
        partial(logistic.measure, 1, 10_000),
    ),
    Benchmark(
        "network",
        "ten leapfrog steps with their draws and gathers, no test / ten value_and_grad calls on batches gathered before",
        1.15,
        False,
        network.measure,
    ),
    Benchmark(
        "network-test",
        "ten leapfrog steps and the test over 60,000 examples / ten value_and_grad calls and one pass over all examples",
        1.2,
        False,
        network.measure_with_test,
    ),
    Benchmark(
        "sample-double-well",
        "transitions/s of one sample() call with store and progress, 4 chains / of the bare chunk runner",
        0.8,
        True,
        partial(whole_run.measure_double_well, 1_500_000),
    ),
    Benchmark(
        "sample-heart",
        "the same for the heart data, batches of 16",
        0.8,
        True,
        partial(whole_run.measure_heart, 200_000),
    ),
    Benchmark(
        "import",
        "loading the samplers and sample() / import jax, each in a fresh process (median)",
        1.3,
        False,
        startup.measure,
    ),
    Benchmark(
        "memory",
        "peak memory with thin=100 / with thin=1, the same number of draws",
        1.2,
        False,
        memory.measure_thinning,
    ),
    Benchmark(
        "memory-store",
        "peak memory of sample() with a store: 10^6 draws / 10^4 draws, 4 chains",
        1.2,
        False,
        memory.measure_store,
    ),
)
