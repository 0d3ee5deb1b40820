"""Two processes with half the data each, beside one process on one core that has them all."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from amagold_lab.bench.disk import folder_of
from amagold_lab.bench.measure import Measurement, NoRatioError

NUM_ROWS = 10**7
NUM_CHAINS, NUM_SAMPLES = 2, 100_000  # of each process
REPEATS = 3


@cache
def found(num_processes: int) -> dict[str, Any]:
    """What the processes measured, each on a core of its own."""
    launch = ["-m", "amagold_lab.cli", "launch", "-n", str(num_processes)]
    script = str(Path(__file__).with_name("one_process.py"))
    # one process alone gets one core of two, as each of two does
    cores = sorted(os.sched_getaffinity(0))
    done = subprocess.run(
        [sys.executable, *launch, script, str(folder_of(NUM_ROWS))],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: os.sched_setaffinity(0, cores[:num_processes]),
    )
    told = [line for line in done.stdout.splitlines() if line.startswith("[0] {")]
    if done.returncode or not told:
        raise NoRatioError((done.stdout.strip().splitlines() or ["it did not start"])[-1])
    return json.loads(told[-1][len("[0] ") :])


def measure_setup(seconds: float) -> Measurement:
    one, two = found(1)["pass_seconds"], found(2)["pass_seconds"]
    return Measurement(one / two, details=f"{one:.2f} s and {two:.2f} s")


def measure_draws(seconds: float) -> Measurement:
    one, two = found(1)["draws_per_second"], found(2)["draws_per_second"]
    exchanges = found(2)["exchange_microseconds"]
    figures = f"{one:,.0f} and {two:,.0f} draws/s; a collective takes {exchanges:.0f} microseconds"
    return Measurement(two / (2 * one), details=figures)


def shortest(call: Callable[[], Any]) -> float:
    """Seconds, the shortest of some."""
    import jax

    times = []
    for _ in range(REPEATS):
        began = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - began)
    return min(times)
