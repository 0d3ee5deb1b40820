"""Data larger than memory: what sampling from disk costs beside sampling from memory, each in a
process of its own.
"""

import atexit
import json
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from amagold_lab.bench.measure import Measurement, NoRatioError

WIDTH = 20  # predictors
MANY, FEW = 10**8, 10**6  # rows
BLOCK = 10**6  # rows that are made at a time
SPARE_BYTES = 2 * 2**30  # that the disk must have beside the data
NUM_SAMPLES = 20_000
READ_BYTES = 2**24


@cache
def folder_of(num_rows: int) -> Path:
    """X.npy and y.npy of a logistic regression, made once and removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="amagold-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    needed = 4 * num_rows * (WIDTH + 1) + SPARE_BYTES
    if shutil.disk_usage(folder).free < needed:
        raise NoRatioError(
            f"{needed / 1e9:.0f} GB on disk are needed, set TMPDIR to where they are"
        )
    make = np.lib.format.open_memmap
    X = make(folder / "X.npy", "w+", np.float32, (num_rows, WIDTH))
    y = make(folder / "y.npy", "w+", np.float32, (num_rows,))
    coefficients = np.random.default_rng(1).normal(0.0, 0.3, WIDTH).astype(np.float32)
    for start in range(0, num_rows, BLOCK):
        generator = np.random.default_rng([7, start])
        rows = generator.standard_normal((min(BLOCK, num_rows - start), WIDTH), np.float32)
        X[start : start + BLOCK] = rows
        ones = 1.0 / (1.0 + np.exp(0.5 - rows @ coefficients))
        y[start : start + BLOCK] = generator.random(len(rows), np.float32) < ones
    return folder


def measured(call: str, num_rows: int) -> dict[str, Any]:
    """What a function below found, in a process of its own."""
    program = f"from amagold_lab.bench import disk; disk.{call}({str(folder_of(num_rows))!r})"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    if done.returncode:
        told = done.stderr.strip().splitlines() or [f"it ended with {done.returncode}"]
        raise NoRatioError(told[-1])
    return json.loads(done.stdout.splitlines()[-1])


def sample_from_disk(folder: str) -> None:
    with PeakAnonymous() as peak:
        from amagold import data, models

        began = time.perf_counter()
        target = models.logistic(data.open(folder, progress=False), outcome="y")
        _tell(target, peak, began)


def sample_from_memory(folder: str) -> None:
    with PeakAnonymous() as peak:
        from amagold import models

        X, y = (np.load(Path(folder) / name) for name in ("X.npy", "y.npy"))
        began = time.perf_counter()
        _tell(models.logistic(X, y), peak, began)


def _tell(target: Any, peak: "PeakAnonymous", began: float) -> None:
    import warnings

    from amagold.sampling._sample import sample
    from amagold_lab.bench.effective_sample_size import effective_draws

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = sample(target, NUM_SAMPLES, progress=False)
    seconds = time.perf_counter() - began
    found = {
        "per_second": effective_draws(run.posterior["theta"].to_numpy()) / run.sampling_seconds,
        "seconds": seconds,
        "compile_seconds": run.compile_seconds,
        "rows": float(run.sample_stats["num_energy_examples"].mean()),
        "peak": peak.bytes,
    }
    print(json.dumps(found))


def pass_over(folder: str) -> None:
    """Seconds of one pass for derivatives and bounds, of reading the file, and of the arithmetic
    alone on rows that are in the cache, for as many rows.
    """
    import jax

    from amagold import data, models
    from amagold.mode._derivatives import derivatives_at
    from amagold.mode._row_bounds import Norm, TaylorBound

    opened = data.open(folder, progress=False)
    target = models.logistic(opened, outcome="y")
    some = models.logistic(
        *(np.load(Path(folder) / name, mmap_mode="r")[:BLOCK] for name in ("X.npy", "y.npy"))
    )
    norm = Norm.of_matrix(float(target.num_examples) * np.eye(WIDTH + 1))

    def seconds(of: Any) -> float:
        bound = TaylorBound(of.bounds, 2, of.init, norm)
        began = time.perf_counter()
        jax.block_until_ready(derivatives_at(of, of.init, 2, bound))
        return time.perf_counter() - began

    for each in (target, some):  # compiled, and the file in the cache as far as it has room
        seconds(each)
    of_all = min(seconds(target) for _ in range(2))
    arithmetic = min(seconds(some) for _ in range(3)) * target.num_examples / some.num_examples
    reading = min(_read(Path(folder) / "X.npy") for _ in range(2))
    print(json.dumps({"pass": of_all, "arithmetic": arithmetic, "reading": reading}))


def _read(path: Path) -> float:
    began = time.perf_counter()
    with path.open("rb", buffering=0) as file:
        while file.read(READ_BYTES):
            pass
    return time.perf_counter() - began


class PeakAnonymous:
    """The most memory of a process that is no file's, looked at every few milliseconds."""

    def __init__(self) -> None:
        self.bytes = 0
        self._ended = threading.Event()

    def __enter__(self) -> "PeakAnonymous":
        if not Path("/proc/self/status").exists():
            raise NoRatioError("anonymous memory is read from /proc, which this system lacks")
        threading.Thread(target=self._watch, daemon=True).start()
        return self

    def __exit__(self, *reason: object) -> None:
        self._ended.set()

    def _watch(self) -> None:
        while not self._ended.wait(0.01):
            lines = Path("/proc/self/status").read_text().splitlines()
            now = next(int(line.split()[1]) for line in lines if line.startswith("RssAnon"))
            self.bytes = max(self.bytes, 1024 * now)


def measure_rate(seconds: float) -> Measurement:
    there, here = measured("sample_from_disk", MANY), measured("sample_from_memory", FEW)
    words = (
        f"{there['per_second']:,.0f} and {here['per_second']:,.0f} effective draws/s; from nothing "
        f"to the end {there['seconds']:.0f} s and {here['seconds']:.0f} s; {there['rows']:.2f} and "
        f"{here['rows']:.2f} rows a test"
    )
    return Measurement(
        there["per_second"] / here["per_second"], there["compile_seconds"], details=words
    )


def measure_memory(seconds: float) -> Measurement:
    there, here = (measured("sample_from_disk", count)["peak"] for count in (MANY, FEW))
    return Measurement(there / here, details=f"{there / 1e6:.0f} MB and {here / 1e6:.0f} MB")


def measure_pass(seconds: float) -> Measurement:
    found = measured("pass_over", MANY)
    slower = max(found["arithmetic"], found["reading"])
    words = ", ".join(f"{name} {value:.1f} s" for name, value in found.items())
    return Measurement(slower / found["pass"], details=words)
