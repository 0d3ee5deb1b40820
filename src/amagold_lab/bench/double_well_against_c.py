"""The paper's double well: almost no arithmetic per step, so that what the framework adds shows."""

import tempfile
from pathlib import Path

from amagold import gradients
from amagold.models._double_well import double_well
from amagold.samplers import Sampler, amagold
from amagold_lab.bench.against_c import NUM_BLOCKS, ChunkRunner, steps_ratio
from amagold_lab.bench.c_loop import CLoop
from amagold_lab.bench.measure import Measurement

C_TRANSITIONS = 1_000_000


def double_well_sampler() -> Sampler:
    """The settings that `double_well.c` holds too."""
    return amagold(
        double_well(), step_size=0.25, friction=0.25, num_steps=10, gradient=gradients.noisy(1.0)
    )


def measure(num_chains: int, num_samples: int, seconds: float) -> Measurement:
    with tempfile.TemporaryDirectory() as folder:
        loop = CLoop("double_well", Path(folder))
        runner = ChunkRunner(double_well_sampler(), 0.0, num_chains, num_samples)
        return steps_ratio(runner, lambda seed: loop.run(C_TRANSITIONS, NUM_BLOCKS, seed), seconds)
