"""The same sampler as a hand-written C loop on one core: what a machine without any framework can
do.
"""

import shutil
import subprocess
from importlib import resources
from pathlib import Path

import numpy as np

from amagold_lab.bench.measure import NoRatioError
from amagold_lab.bench.timed_run import TimedRun

OPTIONS = ("-O3", "-march=native", "-ffast-math")


class CLoop:
    """A program compiled from a C file of this package."""

    def __init__(self, name: str, folder: Path) -> None:
        compiler = shutil.which("gcc")
        if compiler is None:
            raise NoRatioError("no C compiler")
        self.program = folder / name
        with resources.as_file(resources.files("amagold_lab.bench")) as sources:
            command = [
                compiler,
                *OPTIONS,
                str(sources / f"{name}.c"),
                "-o",
                str(self.program),
                "-lm",
            ]
            built = subprocess.run(command, capture_output=True, text=True)
        if built.returncode:
            raise NoRatioError(
                f"the C loop does not compile: {built.stderr.strip().splitlines()[-1]}"
            )

    def run(self, num_transitions: int, num_blocks: int, seed: int, *arguments: object) -> TimedRun:
        """Steps per second, and each block's mean acceptance and mean position."""
        words = [self.program, num_transitions, num_blocks, seed, *arguments]
        output = subprocess.run(
            [str(word) for word in words], capture_output=True, text=True, check=True
        ).stdout
        speed, *blocks = output.splitlines()
        figures = np.array([[float(word) for word in block.split()] for block in blocks])
        return TimedRun(float(speed), figures[:, :1], figures[:, 1:])
