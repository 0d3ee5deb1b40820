"""Several processes sample together: the draws of one, and a clear word when one of them is lost or
differs.
"""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from doubles import some_of

SCRIPT = Path(__file__).parent.parent / "helpers" / "one_of_several.py"
NUM_ROWS, PATIENCE = 3_001, 6.0
LONGEST = 240  # seconds, for everything that must end


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    """A folder of `.npy` columns, whose rows no number of processes divides."""
    folder = tmp_path_factory.mktemp("table") / "columns"
    folder.mkdir()
    generator = np.random.default_rng(11)
    x = generator.normal(size=(NUM_ROWS, 3)).astype(np.float32)
    chance = 1.0 / (1.0 + np.exp(-x @ np.array([0.8, -0.5, 0.2])))
    np.save(folder / "x.npy", x)
    np.save(folder / "y.npy", (generator.random(NUM_ROWS) < chance).astype(np.float32))
    return folder


def launched(count, *arguments):
    command = ["-m", "amagold_lab.cli", "launch", "-n", str(count), str(SCRIPT)]
    began = time.monotonic()
    found = subprocess.run(
        [sys.executable, *command, *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=LONGEST,
        env={**os.environ, "AMAGOLD_PATIENCE": str(PATIENCE)},
    )
    return found.returncode, found.stdout + found.stderr, time.monotonic() - began


def draws(count, what, table, tmp_path, *rest):
    """What every process has of the draws, which is all of them."""
    code, said, _ = launched(count, what, table, tmp_path / f"{what}{count}", *rest)
    assert code == 0, said
    every = [dict(np.load(tmp_path / f"{what}{count}-{place}.npz")) for place in range(count)]
    for other in every[1:]:
        assert all(np.array_equal(other[name], every[0][name]) for name in every[0])
    return every[0]


def assert_alike(ours, theirs):
    assert ours.keys() == theirs.keys()
    assert ours
    for name in ours:
        np.testing.assert_allclose(ours[name], theirs[name], rtol=1e-3, atol=1e-3)
        assert len(np.unique(ours[name])) > 20


@pytest.mark.slow
@pytest.mark.parametrize(
    "count", [2, pytest.param(3, marks=pytest.mark.slow), pytest.param(4, marks=pytest.mark.slow)]
)
def test_the_draws_are_those_of_one_process(count, table, tmp_path):
    assert_alike(draws(1, "sample", table, tmp_path), draws(count, "sample", table, tmp_path))


@pytest.mark.slow
@pytest.mark.parametrize("what", ["whole", "full test"])
def test_so_they_are_without_parts_and_with_walks_over_all_data(what, table, tmp_path):
    assert_alike(*(draws(count, what, table, tmp_path, 2) for count in (1, 2)))


WRONG = {
    "other seed": "process 1 of 2 has another call than process 0",
    "other data": "process 1 of 2 has another data than process 0",
    "other model": "process 1 of 2 has another model than process 0",
    "other columns": "process 1 of 2 has 2 columns and process 0 has 1",
    "uneven": "parts of the data must be about as large as each other",
    "wrong part": "process 1 of 2 has failed with ValueError: part must be",
    "fails": "process 1 of 2 has failed with ValueError: path must exist",
}


@pytest.mark.few(1)
@pytest.mark.parametrize("what", some_of(WRONG, "other data", "other columns", "fails"))
def test_who_differs_is_named_by_all(what, table, tmp_path):
    code, said, _ = launched(2, what, table, tmp_path / "out")
    assert code != 0
    blamed = [
        place for place in (0, 1) if re.search(rf"\[{place}\] .*{re.escape(WRONG[what])}", said)
    ]
    # who fails by itself says it in its own words
    assert blamed == ([0] if "failed with" in WRONG[what] else [0, 1]), said


@pytest.mark.slow
@pytest.mark.parametrize("what", ["dies", "hangs"])
def test_who_is_lost_is_named_in_bounded_time(what, table, tmp_path):
    pause = 30.0
    code, said, seconds = launched(3, what, table, tmp_path / "out", pause)
    assert code != 0
    for place in (0, 2):
        named = rf"\[{place}\] .*process 1 of 3 has given no sign of life"
        assert re.search(named, said), said
    assert seconds < pause + PATIENCE + 60.0


@pytest.mark.slow
def test_a_lost_run_goes_on_with_any_number_of_processes(table, tmp_path):
    """Killed at random moments, one of four; then resumed with one, two and four."""
    expected = draws(1, "store", table, tmp_path, tmp_path / "whole.zarr", 150_000)
    generator = np.random.default_rng(5)
    num_killed = num_resumed = 0
    for number in range(10):
        store = tmp_path / f"run{number}.zarr"
        out = tmp_path / f"killed{number}"
        command = [sys.executable, "-m", "amagold_lab.cli", "launch", "-n", "4", str(SCRIPT)]
        process = subprocess.Popen(
            [*command, "store", str(table), str(out), str(store), "150000"],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            env={**os.environ, "AMAGOLD_PATIENCE": str(PATIENCE)},
        )
        time.sleep(generator.uniform(2.0, 60.0))
        children = subprocess.run(
            ["pgrep", "-P", str(process.pid)], capture_output=True, text=True, check=False
        ).stdout.split()
        victim = int(generator.integers(4))
        assert len(children) == 4, "the run must not have ended yet"
        os.kill(int(children[victim]), 9)
        num_killed += 1
        said, _ = process.communicate(timeout=LONGEST)
        assert process.returncode
        for place in {0, 1, 2, 3} - {victim}:
            assert re.search(rf"\[{place}\] .*process {victim} of 4", said), said
        count = (1, 2, 4)[number % 3]
        if store.is_dir():
            num_resumed += 1
            ours = draws(count, "store", table, tmp_path, store, 150_000)
            for name, theirs in expected.items():
                # decisions that rounding turns are rare, and chains come together again
                apart = np.abs(ours[name] - theirs).reshape(theirs.shape[0], theirs.shape[1], -1)
                assert (apart.max(axis=2) > 1e-3).mean() < 1e-3
    # a run that is killed before its first checkpoint has nothing to go on with
    assert num_killed == 10
    assert num_resumed >= 3
