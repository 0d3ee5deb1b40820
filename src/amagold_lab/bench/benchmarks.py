"""Every benchmark, in the order of the table. Add one by adding a row."""

from functools import partial

from amagold_lab.bench import (
    against_peers,
    benchmark_posteriors,
    disk,
    dist1_against_c,
    double_well_against_c,
    factors,
    front_ends,
    levels,
    logistic_against_c,
    memory,
    network_overhead,
    predicted_rows,
    processes,
    startup,
    whole_run,
)
from amagold_lab.bench.hard_posteriors import HARD_BENCHMARKS
from amagold_lab.bench.measure import Benchmark
from amagold_lab.bench.random_effects import EFFECT_BENCHMARKS

BENCHMARKS = (
    Benchmark(
        "double-well-1024",
        "leapfrog steps/s of 1,024 chains on all cores / of a plain C loop on one core",
        0.5,
        True,
        partial(double_well_against_c.measure, 1024, 400),
    ),
    Benchmark(
        "double-well-1",
        "leapfrog steps/s of one chain / of the same C loop",
        0.15,
        True,
        partial(double_well_against_c.measure, 1, 100_000),
    ),
    Benchmark(
        "dist1",
        "leapfrog steps/s of 64 chains on Dist1, on all cores / of a plain C loop on one core",
        1 / 3,
        True,
        partial(dist1_against_c.measure, 64, 10_000),
    ),
    Benchmark(
        "logistic-64",
        "leapfrog steps/s of 64 chains on all cores / of a plain C loop on one core: 690 x 15, "
        "batch 32, full test",
        0.5,
        True,
        partial(logistic_against_c.measure, 64, 400),
    ),
    Benchmark(
        "logistic-1",
        "leapfrog steps/s of one chain / of the same C loop",
        0.2,
        True,
        partial(logistic_against_c.measure, 1, 10_000),
    ),
    Benchmark(
        "network",
        "ten leapfrog steps with their draws and gathers, no test / ten value_and_grad calls on "
        "batches gathered before",
        1.15,
        False,
        network_overhead.measure,
    ),
    Benchmark(
        "network-test",
        "ten leapfrog steps and the test over 60,000 examples / ten value_and_grad calls and one "
        "pass over all examples",
        1.2,
        False,
        network_overhead.measure_with_test,
    ),
    Benchmark(
        "sample-double-well",
        "transitions/s of one sample() call with store and progress, 4 chains / of the bare chunk "
        "runner",
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
        "second-process",
        "seconds from nothing to 1,000 effective draws: a process that finds its programs "
        "compiled / one that keeps none: 10^6 x 20",
        1 / 3,
        False,
        startup.measure_second_process,
        is_long=True,
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
    Benchmark(
        "memory-data",
        "peak memory of sampling 10 million examples x 20 beyond that of the imports / bytes of X "
        "and y as float32, 64 chains",
        3.0,
        False,
        partial(memory.measure_data, memory.LARGE_EXAMPLES, memory.LARGE_PARAMETERS),
        is_long=True,
    ),
    Benchmark(
        "memory-table",
        "peak memory of amagold fit with store and report, 3 million rows of a Parquet file and "
        "490 coefficients, beyond that of the imports / bytes of its columns as float64",
        3.0,
        False,
        partial(memory.measure_table, 3_000_000),
        is_long=True,
    ),
    Benchmark(
        "flat-logistic-1e6",
        "effective draws/s after warm-up of sample(), 64 chains / of NumPyro's NUTS, whitened at "
        "the mode: 10^6 x 20",
        1_000,
        True,
        partial(
            against_peers.measure_rate,
            "logistic 1000000 x 20",
            benchmark_posteriors.logistic(1_000_000, 20),
        ),
        is_long=True,
    ),
    Benchmark(
        "flat-logistic-1e6-setup",
        "seconds from nothing to 1,000 effective draws: NumPyro's NUTS as it comes (gradients "
        "counted at 20,000 rows) / sample()",
        100,
        True,
        partial(
            against_peers.measure_from_nothing_as_it_comes,
            "logistic 1000000 x 20",
            benchmark_posteriors.logistic(1_000_000, 20),
            benchmark_posteriors.logistic(20_000, 20),
        ),
        is_long=True,
    ),
    Benchmark(
        "flat-logistic-1e6-given",
        "the same, with NUTS given the mode and the Hessian for nothing and a warm-up of 150 / "
        "sample(), which finds its own",
        10,
        True,
        partial(
            against_peers.measure_from_nothing,
            "logistic 1000000 x 20",
            benchmark_posteriors.logistic(1_000_000, 20),
        ),
        is_long=True,
    ),
    Benchmark(
        "flat-in-n",
        "effective draws/s after warm-up of sample(), 64 chains: 4 x 10^6 examples / 10^5 "
        "examples, 20 parameters",
        0.7,
        True,
        partial(against_peers.measure_growth, 100_000, 4_000_000, 20),
        is_long=True,
    ),
    Benchmark(
        "flat-logistic-d100",
        "as flat-logistic-1e6, with 100 parameters",
        50,
        True,
        partial(
            against_peers.measure_rate,
            "logistic 1000000 x 100",
            benchmark_posteriors.logistic(1_000_000, 100),
        ),
        is_long=True,
    ),
    Benchmark(
        "softmax-1e5",
        "the same for models.softmax: 10^5 examples, 9 predictors, 3 classes",
        20,
        True,
        partial(against_peers.measure_rate, "softmax", benchmark_posteriors.softmax(100_000, 9, 3)),
        is_long=True,
    ),
    Benchmark(
        "robust-1e5",
        "the same for models.robust: 10^5 x 20",
        20,
        True,
        partial(against_peers.measure_rate, "robust", benchmark_posteriors.robust(100_000, 20)),
        is_long=True,
    ),
    Benchmark(
        "own-likelihood-1e6",
        "the same for a logistic regression that a user wrote, without bounds: 10^6 x 20",
        5,
        True,
        partial(
            against_peers.measure_rate,
            "own likelihood",
            benchmark_posteriors.own_likelihood(1_000_000, 20),
        ),
        is_long=True,
    ),
    Benchmark(
        "australian-64",
        "effective draws/s after warm-up of sample() / of the better of BlackJAX's and NumPyro's "
        "NUTS, 64 chains each: 690 x 15",
        10,
        True,
        partial(against_peers.measure_small, benchmark_posteriors.australian(), 64, 1_000),
        is_long=True,
    ),
    Benchmark(
        "australian-4",
        "the same with 4 chains each",
        5,
        True,
        partial(against_peers.measure_small, benchmark_posteriors.australian(), 4, 5_000),
        is_long=True,
    ),
    Benchmark(
        "hmcecs",
        "effective draws/s after warm-up of sample(), 64 chains / of NumPyro's HMCECS on every "
        "core, given mode and Hessian: 10^6 x 20",
        10,
        True,
        partial(against_peers.measure_hmcecs, 1_000_000, 20),
        is_long=True,
    ),
    Benchmark(
        "hmcecs-d50",
        "the same for 200,000 x 50",
        10,
        True,
        partial(against_peers.measure_hmcecs, 200_000, 50),
        is_long=True,
    ),
    Benchmark(
        "disk-1e8",
        "effective draws/s after warm-up of sample(): 10^8 x 20 on disk / 10^6 x 20 in memory",
        0.5,
        True,
        disk.measure_rate,
        is_long=True,
    ),
    Benchmark(
        "disk-memory",
        "peak anonymous memory of a process that samples from disk: 10^8 x 20 / 10^6 x 20",
        1.2,
        False,
        disk.measure_memory,
        is_long=True,
    ),
    Benchmark(
        "disk-pass",
        "speed of a pass over 10^8 x 20 on disk for derivatives and bounds / of reading the file "
        "or of the arithmetic alone, whichever is slower",
        0.7,
        True,
        disk.measure_pass,
        is_long=True,
    ),
    Benchmark(
        "processes-setup",
        "seconds of a pass for derivatives: one process on one core / two processes on a core "
        "each, with half of the data: 10^7 x 20 on disk",
        1.6,
        True,
        processes.measure_setup,
        is_long=True,
    ),
    Benchmark(
        "processes-draws",
        "draws/s after warm-up of sample(): two processes with half of the data and two chains "
        "each / twice those of one process on one core with all data and two chains",
        0.7,
        True,
        processes.measure_draws,
        is_long=True,
    ),
    Benchmark(
        "predict-1e6",
        "speed of run.predict, with mean and interval of 10^6 rows x 20 from 1,000 draws / of "
        "X @ draws.T in float32, which keeps 4 GB",
        0.5,
        True,
        predicted_rows.measure,
        is_long=True,
    ),
    Benchmark(
        "flights",
        "effective draws/s of fit() / of NUTS in units of the whole curvature, from its gradients' "
        "time and as if every draw were independent: 3 x 10^6 rows, 490 coefficients of factors",
        100.0,
        True,
        partial(factors.measure_rate, 3_000_000),
        is_long=True,
    ),
    Benchmark(
        "codes",
        "seconds of a pass for derivatives: expanded columns / codes, 200,000 rows of that table",
        5.0,
        True,
        factors.measure_codes,
        is_long=True,
    ),
    Benchmark(
        "level-rows",
        "rows that a test looks at, of the family with the most / all rows: 200,000 rows with two "
        "numbers and a factor of 300 levels",
        0.05,
        False,
        partial(levels.measure_rows, 200_000),
        is_long=True,
    ),
    Benchmark(
        "levels-1e4",
        "effective draws/s after warm-up of fit(), the slowest of 10,001 coefficients / of NUTS in "
        "units of the diagonal curvature, from its gradients' time and as if every draw were "
        "independent: 10^6 rows, a factor of 10,000 levels",
        10.0,
        True,
        partial(levels.measure_ten_thousand, 1_000_000, 10_000),
        is_long=True,
    ),
    Benchmark(
        "numpyro-logistic-1e6",
        "effective draws/s after warm-up of sample(), 64 chains: a NumPyro model by from_numpyro / "
        "models.logistic: 10^6 x 20",
        0.7,
        True,
        partial(front_ends.measure_numpyro, 1_000_000, 20),
        is_long=True,
    ),
    Benchmark(
        "own-two-predictors-1e6",
        "effective draws/s after warm-up of sample(), 64 chains / of NumPyro's NUTS, whitened at "
        "the mode (draws for each gradient counted at 20,000 rows, gradients timed at 10^6): "
        "zero-inflated counts, 10^6 x (10 + 5)",
        1_000,
        True,
        partial(front_ends.measure_own, 1_000_000, 20_000),
        is_long=True,
    ),
    *HARD_BENCHMARKS,
    *EFFECT_BENCHMARKS,
)
