"""Thinning happens inside the run: a hundred times the transitions, the same memory."""

import subprocess
import sys

from amagold.bench.measure import Measurement

NUM_CHAINS, NUM_SAMPLES, THIN = 64, 1_000, 100


def peak_memory(thin: int) -> int:
    """The most memory that a process of its own held while it drew."""
    program = f"from amagold.bench import memory; memory.draw_and_print_peak({thin})"
    return int(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)


def draw_and_print_peak(thin: int) -> None:
    import resource  # Unix only

    import jax
    import numpy as np

    from amagold.bench.double_well import double_well_sampler
    from amagold.run import run_chains

    run_chains(double_well_sampler(), jax.random.key(0), np.zeros(NUM_CHAINS, np.float32), NUM_SAMPLES, thin=thin)
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)


def measure(seconds: float) -> Measurement:
    return Measurement(peak_memory(THIN) / peak_memory(1))
