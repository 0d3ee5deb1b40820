"""The benchmark table: its rows, not its speed."""

import math
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from amagold_lab import bench
from amagold_lab.bench import memory
from amagold_lab.bench.benchmark_table import table_row
from amagold_lab.bench.benchmarks import BENCHMARKS
from amagold_lab.bench.measure import Benchmark, Measurement, NoRatioError
from amagold_lab.bench.timed_run import TimedRun, check_runs_agree


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a C compiler")
def test_table_has_a_finite_ratio() -> None:
    program = "from amagold_lab import bench; bench.run(only=['double-well-1'], seconds=0.05)"
    output = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    ).stdout
    found = re.search(r"double-well-1\s*\D\s*([\d.e+-]+)", output)
    assert found, output
    assert math.isfinite(float(found.group(1)))
    assert "compile" in output


@pytest.mark.parametrize("name", ["double-well-1", "logistic-1"])
def test_missing_compiler_is_reported(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda command: None)
    benchmark = next(benchmark for benchmark in BENCHMARKS if benchmark.name == name)
    row = table_row(benchmark, 0.05)
    assert row[3] == "skipped"
    assert "no C compiler" in row[5]


def test_unknown_name_is_refused() -> None:
    with pytest.raises(ValueError, match="only must name benchmarks among double-well-1024"):
        bench.run(only=["double-wall"])


@pytest.mark.parametrize(("at_least", "verdict"), [(True, "met"), (False, "missed")])
def test_bound_has_a_direction(at_least: bool, verdict: str) -> None:
    benchmark = Benchmark(
        "name", "one / other", 1.0, at_least, lambda seconds: Measurement(2.0, 0.5)
    )
    row = table_row(benchmark, 0.1)
    assert row[1] == "2"
    assert verdict in row[3]
    assert row[4] == "0.5 s"


def test_sides_that_differ_are_void() -> None:
    generator = np.random.default_rng(0)

    def side(acceptance: float, num_chains: int) -> TimedRun:
        return TimedRun(
            1.0,
            acceptance + 0.01 * generator.normal(size=(20, num_chains)),
            generator.normal(size=(20, num_chains)),
        )

    check_runs_agree([side(0.7, 1)], [side(0.7, 1)])
    check_runs_agree([side(0.7, 8), side(0.7, 8)], [side(0.7, 1)])
    with pytest.raises(NoRatioError, match="void: acceptance"):
        check_runs_agree([side(0.7, 8)], [side(0.6, 1)])


@pytest.mark.slow
def test_a_stored_run_takes_no_more_memory_however_long_it_is() -> None:
    assert memory.measure_store(0.0).ratio <= 1.2
