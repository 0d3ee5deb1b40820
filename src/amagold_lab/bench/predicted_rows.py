"""Predictions of many rows against the bare matrix product that they need."""

import time
import warnings
from collections.abc import Callable

import numpy as np

from amagold_lab.bench.measure import Measurement, NoRatioError, in_turns

NUM_ROWS, NUM_COLUMNS, NUM_DRAWS, NUM_FITTED = 10**6, 20, 1_000, 3_000
MOST_PAIRS = 5


def measure(seconds: float) -> Measurement:
    """Speed of `run.predict` / of X @ draws.T in float32, which keeps 4 GB."""
    try:
        import pandas
    except ImportError:
        raise NoRatioError("tables need pandas: pip install 'amagold[tables]'") from None
    from amagold.tables._fit import fit

    generator = np.random.default_rng(0)
    X = generator.standard_normal((NUM_ROWS, NUM_COLUMNS), np.float32)
    table = pandas.DataFrame(X, columns=[f"x{place}" for place in range(NUM_COLUMNS)])
    fitted = table.iloc[:NUM_FITTED].assign(y=generator.random(NUM_FITTED) < 0.4)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what the draws say does not matter here
        run = fit(None, fitted, outcome="y", num_samples=NUM_DRAWS // 4, progress=False)
    draws = np.stack([run.posterior[name].values.ravel() for name in table.columns], axis=1)
    draws = draws.astype(np.float32)
    begin = time.perf_counter()
    run.predict(table.iloc[: 2**15])
    compile_seconds = time.perf_counter() - begin
    pairs = in_turns(
        lambda: _seconds(lambda: run.predict(table, num_draws=NUM_DRAWS)),
        lambda: _seconds(lambda: X @ draws.T),
        seconds,
        MOST_PAIRS,
    )
    ours, theirs = np.median(pairs, axis=0)
    details = f"{ours:.1f} s and {theirs:.1f} s"
    return Measurement(float(theirs / ours), compile_seconds, details)


def _seconds(call: Callable[[], object]) -> float:
    begin = time.perf_counter()
    call()
    return time.perf_counter() - begin
