"""What loading the package costs on top of loading JAX."""

import subprocess
import sys

import numpy as np

from amagold_lab.bench.measure import Measurement, in_turns

# names load when first used, so they are named, not the package alone
OURS = "from amagold import amagold, sample"
THEIRS = "import jax"
MOST_RUNS = 9


def import_seconds(statement: str) -> float:
    """The time of an import statement in a fresh process, without the interpreter's own start."""
    program = (
        f"import time; start = time.perf_counter(); {statement}; print(time.perf_counter() - start)"
    )
    return float(
        subprocess.run(
            [sys.executable, "-c", program], capture_output=True, text=True, check=True
        ).stdout
    )


def measure(seconds: float) -> Measurement:
    pairs = in_turns(
        lambda: import_seconds(OURS), lambda: import_seconds(THEIRS), seconds, MOST_RUNS
    )
    ours, theirs = np.median(pairs, axis=0)
    return Measurement(float(ours / theirs))
