"""Logistic regression of the size of the Australian credit data: small batches, a test over all
data every ten steps.
"""

import tempfile
from pathlib import Path

import numpy as np

from amagold import models
from amagold.samplers import amagold
from amagold_lab.bench.against_c import NUM_BLOCKS, ChunkRunner, steps_ratio
from amagold_lab.bench.c_loop import CLoop
from amagold_lab.bench.measure import Measurement

NUM_EXAMPLES, NUM_PREDICTORS, BATCH_SIZE = 690, 14, 32
STEP_SIZE, FRICTION = 0.002, 0.25  # six proposals in ten are accepted
C_TRANSITIONS = 40_000


def synthetic() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Standardised predictors, outcomes of 0 and 1, and the coefficients (intercept first) that
    made them.
    """
    generator = np.random.default_rng(0)
    coefficients = generator.normal(0.0, 0.7, NUM_PREDICTORS + 1).astype(np.float32)
    predictors = generator.normal(size=(NUM_EXAMPLES, NUM_PREDICTORS)).astype(np.float32)
    predictors = (predictors - predictors.mean(axis=0)) / predictors.std(axis=0)
    chances = 1.0 / (1.0 + np.exp(-coefficients[0] - predictors @ coefficients[1:]))
    return predictors, (generator.uniform(size=NUM_EXAMPLES) < chances).astype(int), coefficients


def write_rows(
    path: Path, predictors: np.ndarray, outcomes: np.ndarray, coefficients: np.ndarray
) -> None:
    """The file that `logistic.c` reads: rows of 16 with the sign multiplied in, then the start."""
    rows = np.zeros((NUM_EXAMPLES + 1, NUM_PREDICTORS + 2), np.float32)
    signs = np.where(outcomes > 0, 1.0, -1.0)[:, None]
    rows[:-1, :-1] = signs * np.column_stack([np.ones(NUM_EXAMPLES), predictors])
    rows[-1, :-1] = coefficients
    path.write_bytes(rows.tobytes())


def measure(num_chains: int, num_samples: int, seconds: float) -> Measurement:
    predictors, outcomes, coefficients = synthetic()
    target = models.logistic(predictors, outcomes, prior_scale=1.0)
    sampler = amagold(
        target, step_size=STEP_SIZE, friction=FRICTION, num_steps=10, batch_size=BATCH_SIZE
    )
    with tempfile.TemporaryDirectory() as folder:
        loop = CLoop("logistic", Path(folder))
        data = Path(folder) / "data"
        write_rows(data, predictors, outcomes, coefficients)
        runner = ChunkRunner(sampler, coefficients, num_chains, num_samples)
        return steps_ratio(
            runner,
            lambda seed: loop.run(C_TRANSITIONS, NUM_BLOCKS, seed, data, STEP_SIZE, FRICTION),
            seconds,
        )
