"""What a process costs before its first draw: loading the package, tracing and compiling."""

import os
import subprocess
import sys
import tempfile
from typing import NamedTuple

import numpy as np

from amagold.core.program_cache import VARIABLE
from amagold_lab.bench.measure import Measurement, NoRatioError, in_turns

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


# the table is the user's own; all that follows is counted, the loading of JAX included
WHOLE = """
import time
import numpy as np
draw = np.random.default_rng(0)
X = draw.standard_normal((1_000_000, 20), np.float32)
y = draw.random(1_000_000) < 1.0 / (1.0 + np.exp(-X @ draw.normal(0.0, 0.5, 20)))
start, work = time.perf_counter(), time.process_time()
import amagold
run = amagold.sample(amagold.models.logistic(X, y), num_samples=500, progress=False)
print(
    time.perf_counter() - start,
    time.process_time() - work,
    amagold.minimum_ess(run.posterior),
    float(run.posterior["theta"].sum()),
)
"""
FEWEST_EFFECTIVE = 1_000


class WholeProcess(NamedTuple):
    """Wall and processor time from nothing to the wanted draws, their number, and a sum of them."""

    seconds: float
    processor_seconds: float
    num_effective: float
    checksum: float


def whole_process(folder: str) -> WholeProcess:
    """A process of its own, with programs kept in the folder, or "off"."""
    # bytecode is there, as it is of packages that were installed
    chosen = ("JAX_COMPILATION_CACHE_DIR", "PYTHONDONTWRITEBYTECODE", VARIABLE)
    environment = {name: value for name, value in os.environ.items() if name not in chosen}
    ended = subprocess.run(
        [sys.executable, "-c", WHOLE],
        env=environment | {VARIABLE: folder},
        capture_output=True,
        text=True,
        check=True,
    )
    return WholeProcess(*map(float, ended.stdout.split()))


def measure_second_process(seconds: float) -> Measurement:
    """A process that finds its programs against one that compiles them; medians."""
    found: list[WholeProcess] = []
    with tempfile.TemporaryDirectory() as folder:

        def second() -> float:
            found.append(whole_process(folder))
            return found[-1].seconds

        def first() -> float:
            found.append(whole_process("off"))
            return found[-1].seconds

        second()
        found.clear()
        pairs = in_turns(second, first, 10.0 * seconds, MOST_RUNS)
    if len({each.checksum for each in found}) != 1:
        raise NoRatioError("void: the draws differ")
    fewest = min(each.num_effective for each in found)
    if fewest < FEWEST_EFFECTIVE:
        raise NoRatioError(f"void: {fewest:.0f} effective draws")
    ours, theirs = np.median(pairs, axis=0)
    work = np.median([each.processor_seconds for each in found[0::2]])
    whole = np.median([each.processor_seconds for each in found[1::2]])
    return Measurement(
        float(ours / theirs),
        details=f"{ours:.1f} s and {theirs:.1f} s; {work:.1f} s and {whole:.1f} s of processor "
        "time",
    )
