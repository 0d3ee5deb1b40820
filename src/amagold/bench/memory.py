"""Memory stays where it is: thinning happens inside the run, and stored draws leave it."""

import subprocess
import sys
from pathlib import Path

from amagold.bench.measure import Measurement, NoRatioError

NUM_CHAINS, NUM_SAMPLES, THIN = 64, 1_000, 100
STORED_CHAINS, FEW, MANY = 4, 10_000, 1_000_000


def peak_memory(call: str) -> int:
    """The most memory that a process of its own held during a call of a function below."""
    program = f"from amagold.bench import memory; memory.{call}; memory.print_peak()"
    return int(subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout)


def print_peak() -> None:
    # not getrusage's maximum, which a process inherits from the one that started it
    status = Path("/proc/self/status")
    if not status.exists():
        raise NoRatioError("the peak of a process's memory is read from /proc, which this system lacks")
    print(next(line.split()[1] for line in status.read_text().splitlines() if line.startswith("VmHWM")))


def draw_thinned(thin: int) -> None:
    import jax
    import numpy as np

    from amagold.bench.double_well import double_well_sampler
    from amagold.run import run_chains

    run_chains(double_well_sampler(), jax.random.key(0), np.zeros(NUM_CHAINS, np.float32), NUM_SAMPLES, thin=thin)


def draw_stored(num_samples: int) -> None:
    import tempfile
    import warnings

    from amagold.bench.double_well import double_well_sampler
    from amagold.sampling.sample import sample

    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sample(double_well_sampler(), num_samples, 100, STORED_CHAINS, init=0.0, store=Path(folder) / "run.zarr", progress=False)


def measure_thinning(seconds: float) -> Measurement:
    return Measurement(peak_memory(f"draw_thinned({THIN})") / peak_memory("draw_thinned(1)"))


def measure_store(seconds: float) -> Measurement:
    return Measurement(peak_memory(f"draw_stored({MANY})") / peak_memory(f"draw_stored({FEW})"))
