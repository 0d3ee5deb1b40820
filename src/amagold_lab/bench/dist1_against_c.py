"""The paper's Dist1: two coordinates, so that a draw of the paper's five million costs what it
costs in `amagold reproduce dist`.
"""

import tempfile
from pathlib import Path

from amagold_lab.bench.against_c import NUM_BLOCKS, ChunkRunner, steps_ratio
from amagold_lab.bench.c_loop import CLoop
from amagold_lab.bench.measure import Measurement
from amagold_lab.paper.synthetic_chains import make_sampler

C_TRANSITIONS = 500_000
STEP_SIZE = 0.15  # as `dist1.c` holds it


def measure(num_chains: int, num_samples: int, seconds: float) -> Measurement:
    sampler = make_sampler("AMAGOLD", "Dist1", STEP_SIZE)
    with tempfile.TemporaryDirectory() as folder:
        loop = CLoop("dist1", Path(folder))
        runner = ChunkRunner(sampler, sampler.target.init, num_chains, num_samples)
        return steps_ratio(runner, lambda seed: loop.run(C_TRANSITIONS, NUM_BLOCKS, seed), seconds)
