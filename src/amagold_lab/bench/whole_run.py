"""What `amagold.sample` adds to the bare chunk runner: store, checkpoints, progress, statistics and
advice.
"""

import contextlib
import io
import os
import tempfile
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

from amagold import datasets, models
from amagold.samplers import Sampler, amagold
from amagold.sampling._sample import sample
from amagold_lab.bench.against_c import ChunkRunner
from amagold_lab.bench.double_well_against_c import double_well_sampler
from amagold_lab.bench.measure import Measurement, in_turns, seconds_of

NUM_CHAINS = 4


def heart_sampler() -> Sampler:
    """The paper's setting of the heart data: batches of 16."""
    table = datasets.heart()
    return amagold(
        models.logistic(table.X, table.y, prior_scale=1.0),
        step_size=0.01,
        num_steps=10,
        batch_size=16,
    )


@contextlib.contextmanager
def terminal() -> Iterator[None]:
    """A terminal that nobody sees, so that the display works as it does for a user."""
    with (
        mock.patch.dict(os.environ, {"FORCE_COLOR": "1"}),
        contextlib.redirect_stderr(io.StringIO()),
        contextlib.redirect_stdout(io.StringIO()),
    ):
        yield


def sampled(sampler: Sampler, position: Any, num_samples: int) -> float:
    """Transitions per second of the whole call."""
    with tempfile.TemporaryDirectory() as folder, terminal(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        sample(sampler, num_samples, 0, NUM_CHAINS, init=position, store=Path(folder) / "run.zarr")
        return num_samples * NUM_CHAINS / (time.perf_counter() - start)


def measure(sampler: Sampler, position: Any, num_samples: int, seconds: float) -> Measurement:
    runner = ChunkRunner(sampler, position, NUM_CHAINS, num_samples)
    runner.run()
    first = seconds_of(lambda: sampled(sampler, position, num_samples))

    def ours() -> float:
        return sampled(sampler, position, num_samples)

    def theirs() -> float:
        return runner.run().speed / sampler.num_steps

    best, best_raw = np.max(in_turns(ours, theirs, seconds), axis=0)
    return Measurement(float(best / best_raw), max(0.0, first - num_samples * NUM_CHAINS / best))


def measure_double_well(num_samples: int, seconds: float) -> Measurement:
    return measure(double_well_sampler(), 0.0, num_samples, seconds)


def measure_heart(num_samples: int, seconds: float) -> Measurement:
    return measure(heart_sampler(), np.zeros(14, np.float32), num_samples, seconds)
