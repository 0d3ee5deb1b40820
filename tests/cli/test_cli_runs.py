"""`amagold resume RUN` goes on with a run that was stopped; `amagold report RUN` says what it
found.
"""

import signal
import subprocess
import sys

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import amagold
from amagold.core.printable import printable
from amagold.store._checkpoint import decode, encode
from amagold.store._zarr_store import PRIVATE
from amagold_lab.cli import main

pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")

MODEL = """
import amagold

def make():
    return amagold.amagold(amagold.models.double_well(), step_size=0.2)

table = amagold.datasets.heart()

def fails():
    return amagold.models.double_well(1, 2, 3)

def narrow():
    return amagold.models.network(table.X, table.y, hidden=5)
"""


@pytest.fixture
def short_chunks(monkeypatch):
    monkeypatch.setattr("amagold.runner._layout.MAX_CHUNK", 100)


def logistic():
    table = amagold.datasets.heart()
    return amagold.models.logistic(table.X, table.y, prior_scale=2.0)


@pytest.mark.parametrize(
    "target", [amagold.models.double_well, pytest.param(logistic, marks=pytest.mark.slow)]
)
def test_a_ready_made_model_needs_no_code(tmp_path, short_chunks, capsys, target):
    path = tmp_path / "run.zarr"
    partial = amagold.sample(target(), 1_000, 40, 2, store=path, progress=False, max_time=1e-6)
    assert partial.is_partial
    assert main(["resume", str(path)]) == 0
    assert "2 chains x 1000 draws, exact" in capsys.readouterr().out
    whole = amagold.sample(target(), 1_000, 40, 2, progress=False)
    np.testing.assert_array_equal(amagold.load(path).posterior["theta"], whole.posterior["theta"])


def test_a_stored_run_is_reported(tmp_path, capsys):
    path, picture = tmp_path / "run.zarr", tmp_path / "run.png"
    amagold.sample(amagold.models.double_well(), 100, 40, 2, store=path, progress=False)
    assert main(["report", str(path), "--picture", str(picture)]) == 0
    printed = capsys.readouterr().out
    for word in ("Gradient: ", "2 chains x 100 draws, exact", "ess_bulk", "Written to"):
        assert word in printed
    assert picture.stat().st_size > 10_000
    assert main(["report", str(path), "--picture", "run.jpg"]) == 2
    assert "picture must be a file that ends in .png" in capsys.readouterr().err


def test_a_model_of_the_users_own_is_named(tmp_path, short_chunks, capsys, monkeypatch):
    (tmp_path / "my_model.py").write_text(MODEL)
    (tmp_path / "broken_model.py").write_text("1 / 0")
    monkeypatch.chdir(tmp_path)
    sampler = amagold.amagold(amagold.models.double_well(), step_size=0.2)
    amagold.sample(sampler, 1_000, 40, 2, init=0.0, store="run.zarr", progress=False, max_time=1e-6)
    for options, sentence in (
        ([], "target must be named for a model of your own; give --target MODULE:NAME"),
        (["--target", "my_model"], "target must be MODULE:NAME, got 'my_model'"),
        (
            ["--target", "no_model:make"],
            "target must name a module that can be imported, got 'no_model'",
        ),
        (
            ["--target", "my_model:mace"],
            "target must name something in 'my_model', but it has no 'mace'",
        ),
        (["--target", "my_model:table"], "target_or_sampler must be an amagold.Posterior"),
        (
            ["--target", ".m:x"],
            "target must be MODULE:NAME with the module's full name, got '.m:x'",
        ),
        (
            ["--target", "my_model:fails"],
            "but 'my_model:fails' raised TypeError at my_model.py:10: ",
        ),
        (["--target", "my_model:narrow"], "'my_model:narrow' raised "),
        (
            ["--target", "broken_model:x"],
            "got 'broken_model' (ZeroDivisionError at broken_model.py:1: division by zero)",
        ),
    ):
        assert main(["resume", "run.zarr", *options]) == 2
        said = capsys.readouterr().err
        assert sentence in said
        assert said.count("\n") == 1
    assert main(["resume", "run.zarr", "--target", "my_model:make", "--max-time", "100"]) == 0
    assert not amagold.load("run.zarr").is_partial


def test_what_cannot_be_resumed_is_said(tmp_path, capsys):
    assert main(["resume", str(tmp_path / "nothing")]) == 2
    assert "path must be the folder of a stored run" in capsys.readouterr().err
    path = tmp_path / "run.zarr"
    amagold.sample(
        amagold.models.double_well(), 10, 10, 2, store=path, progress=False, max_time=1e-6
    )
    file = path / PRIVATE / "model"
    file.write_bytes(file.read_bytes()[:-3])
    assert main(["resume", str(path)]) == 2
    assert (
        "is damaged: its checksum does not match; name it with --target" in capsys.readouterr().err
    )


RECIPES = {
    "no prior": lambda settings, arrays: settings.pop("prior"),
    "a prior of another type": lambda settings, arrays: settings.update(prior=[1]),
    "another model": lambda settings, arrays: settings.update(model="os.system"),
    "a model of another type": lambda settings, arrays: settings.update(model=["logistic"]),
    "settings of an outcome": lambda settings, arrays: settings.update(outcome={"num_classes": 3}),
    "a prior's array more": lambda settings, arrays: arrays.update({"prior.more": np.zeros(3)}),
    "an array less": lambda settings, arrays: arrays.popitem(),
    "an array more": lambda settings, arrays: arrays.update(more=np.zeros(3)),
    "arrays of other lengths": lambda settings, arrays: arrays.update(
        {"data.sign": arrays["data.sign"][:5]}
    ),
}


@pytest.fixture(scope="module")
def logistic_run(tmp_path_factory):
    path = tmp_path_factory.mktemp("logistic") / "run.zarr"
    amagold.sample(logistic(), 10, 10, 2, store=path, progress=False, max_time=1e-6)
    return path


@pytest.mark.parametrize("change", RECIPES)
def test_an_edited_model_is_refused_in_one_line(logistic_run, capsys, change):
    file = logistic_run / PRIVATE / "model"
    whole = file.read_bytes()
    kept = decode(whole)
    RECIPES[change](kept.notes, kept.arrays)
    file.write_bytes(encode(kept))
    try:
        assert main(["resume", str(logistic_run)]) == 2
    finally:
        file.write_bytes(whole)
    said = capsys.readouterr().err
    assert "path must hold the model of the run" in said
    assert "name it with --target" in said
    assert said.count("\n") == 1


def test_a_reader_that_has_seen_enough(logistic_run):
    """`amagold report RUN | head -1`: no word of a broken pipe."""
    program = "import sys; from amagold_lab.cli import main; sys.exit(main())"
    command = [sys.executable, "-W", "ignore", "-c", program, "report", str(logistic_run)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        process.stdout.close()  # before the first word
        assert process.stderr.read() == b""
    assert process.returncode == 128 + signal.SIGPIPE


@pytest.mark.parametrize("path", ["run\0.zarr", "\x1b[31mrun.zarr"])
def test_odd_paths_are_named_and_not_obeyed(capsys, path):
    for command in ("report", "resume"):
        assert main([command, path]) == 2
        said = capsys.readouterr().err
        assert "path must be the folder of a stored run" in said
        assert said.replace("\n", "").isprintable()


def test_a_picture_has_a_place_before_the_run_is_read(logistic_run, capsys, tmp_path):
    for picture, sentence in (
        (tmp_path / "no" / "run.png", "must lie in a folder that exists"),
        ("a\0b.png", "no path has null characters"),
    ):
        assert main(["report", str(logistic_run), "--picture", str(picture)]) == 2
        assert "picture must" in (said := capsys.readouterr().err)
        assert sentence in said


def test_no_names_of_benchmarks(capsys):
    assert main(["bench", "--only"]) == 2
    assert "only must name benchmarks among double-well-1024, " in capsys.readouterr().err


def test_what_is_printed_cannot_steer_a_terminal():
    assert printable("plain text, ä, 漢\nand more") == "plain text, ä, 漢\nand more"
    for sign in ("\x1b[2J", "\x9b31m", "\r", "\x00", "\u202e", "\x7f", "\u2028"):
        assert printable(sign).isprintable()


def test_a_table_is_prepared(tmp_path, capsys):
    table = pa.table({"late": [0, 1, 1], "port": ["a", "b", "a"], "miles": [1.5, 2.5, 3.0]})
    pq.write_table(table, tmp_path / "flights.parquet")
    arguments = ["data", "prepare", str(tmp_path / "flights.parquet"), str(tmp_path / "rows")]
    assert main(arguments) == 0
    told = capsys.readouterr().out
    assert "3 rows" in told
    assert "port: texts, 2 of them" in told
    opened = amagold.data.open(tmp_path / "rows", columns=["miles", "late"])
    np.testing.assert_array_equal(opened.rows(np.arange(3))["late"], [0, 1, 1])
    assert main([*arguments, "--columns", "miles", "late"]) == 0
    assert "port" not in capsys.readouterr().out
    assert main([*arguments[:2], str(tmp_path / "nothing"), str(tmp_path / "other")]) == 2
    assert capsys.readouterr().err.startswith("amagold data: source must")
    assert not (tmp_path / "other").exists()
