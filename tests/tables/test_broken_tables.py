"""Broken tables and formulas: one clear line, exit code 2, nothing left behind."""

import gzip
import os
import subprocess
import sys

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")

from amagold.cli import main  # noqa: E402

NUM_ROWS = 60
ROWS = b"".join(b"%d,%f,%d\n" % (row % 2, row * 0.1, row % 3) for row in range(40))


def changed(**columns):
    """A table of which some columns are others, as a CSV file."""
    generator = np.random.default_rng(0)
    frame = pandas.DataFrame(
        {
            "late": generator.integers(0, 2, NUM_ROWS),
            "x": generator.normal(size=NUM_ROWS),
            "m": generator.integers(1, 4, NUM_ROWS),
        }
    )
    return frame.assign(**columns).to_csv(index=False).encode()


def numbers(first):
    return [first, *(1.5 * row for row in range(NUM_ROWS - 1))]


def many_columns():
    return b",".join(b"c%d" % place for place in range(10_000)) + b"\n" + b"1," * 9_999 + b"0\n"


WHOLE = changed()
# the bytes of a file, its formula, and what is said
FILES = {
    "empty": (b"", "late ~ x", "must begin with the names of its columns"),
    "header alone": (b"late,x\n", "late ~ x", "must have at least one row"),
    "one class": (changed(late=1), "late ~ x", "outcome 'late' must vary, but it is 1"),
    "one class of texts": (changed(late="yes"), "late ~ x", "must hold two classes"),
    "three classes": (changed(late=["a", "b", "c"] * 20), "late ~ x", "must hold two classes"),
    "odd classes": (changed(late=[0, 2] * 30), "late ~ x", "outcome 'late' must hold 0 and 1"),
    "constant": (changed(x=3.0), "late ~ x", "'x' is 3 in all rows"),
    "constant factor": (changed(o="a"), "late ~ o", "'o' has one level in all rows"),
    "text in numbers": (changed(x=numbers("oops")), "late ~ x", "such as 'oops' among numbers"),
    "names of rows": (
        changed(o=[f"n{row}" for row in range(NUM_ROWS)]),
        "late ~ o",
        "60 different texts, such as 'n0'",
    ),
    "decimal commas": (
        changed(x=[f"{row},5" for row in range(NUM_ROWS)]),
        "late ~ x",
        "write decimal points",
    ),
    "dates": (changed(t="2024-01-01"), "late ~ t", "'t' holds dates or times; make a number"),
    "times": (changed(t="10:00:00"), "late ~ t", "'t' holds dates or times"),
    "dates for outcome": (changed(late="2024-01-01"), "late ~ x", "but holds dates or times"),
    "missing": (changed(x=numbers(None)), "late ~ x", "1 in 'x'; fill them in"),
    "all missing": (changed(x=None), "late ~ x", "60 in 'x'"),
    "infinite": (changed(x=numbers(np.inf)), "late ~ x", "'x' is infinite or none in 1 row"),
    "infinite outcome": (changed(late=numbers(np.inf)), "late ~ x", "outcome 'late' must be fin"),
    "log of zero": (changed(x=range(NUM_ROWS)), "late ~ log(x)", "'log(x)' is infinite"),
    "log below zero": (WHOLE, "late ~ log(x)", "'log(x)' is not a number in some rows"),
    "infinite product": (changed(x=numbers(np.inf)), "late ~ x:C(m)", "is infinite or none"),
    "too wide": (changed(x=np.arange(NUM_ROWS) * 1e300), "late ~ x", "must have a width between"),
    "names twice": (b"late,x,x\n" + ROWS, "late ~ x", "'x' is there twice"),
    "no names": (b"\n" + ROWS, "late ~ x", "must begin with the names"),
    "spaces": (b"late x m\n" + ROWS.replace(b",", b" "), "late ~ x", "parted by other signs"),
    "UTF-16": (("late,x\n" * 9).encode("utf-16"), "late ~ x", "is one in UTF-16"),
    "Latin-1": (b"late,o\n1,\xfc\n0,a\n", "late ~ o", "column 'o' is not; save it as UTF-8"),
    "Latin-1 names": (b"late,\xfc\n1,2\n", "late ~ x", "the header of"),
    "ragged": (b"late,x,m\n1,2\n1,2,3\n", "late ~ x", "Expected 3 columns, got 2"),
    "bytes": (bytes(range(255, 0, -1)), "late ~ x", "must be a text in UTF-8"),
    "stranger": (WHOLE, "late ~ speed", "'speed' is none: it has 'late', 'x', 'm'"),
    "strange outcome": (WHOLE, "lat ~ x", "'lat' is none"),
    "itself": (WHOLE, "late ~ late + x", "must not explain the outcome 'late' by itself"),
    "outcome of a function": (WHOLE, "log(m) ~ x", "make a column of it first"),
    "nothing": (WHOLE, "late ~ 0", "must have at least one term"),
    "unknown function": (WHOLE, "late ~ spline(x)", "must not call 'spline'"),
    "unknown member": (WHOLE, "late ~ np.load(x)", "must not reach into 'np.load'"),
    "a function": (WHOLE, "late ~ I((lambda: 1)())", "formula must"),
    "half a formula": (WHOLE, "late ~ x +", "must be one that formulaic knows"),
    "two formulas": (WHOLE, "late ~ x ~ m", "must be a text such as"),
    "unknown level": (WHOLE, "late ~ C(m, levels=[1, 2])", "outside of the nominated levels"),
    "taken name": (changed(Intercept=range(NUM_ROWS)), "late ~ Intercept", "'Intercept'; rename"),
    "many columns": (many_columns(), "--outcome=c0", "at most 4,096 columns beside the outcome"),
    "odd name": (b"late,a`b\n1,2\n", "--outcome=late", "names without '`'"),
}
OTHERS = {
    "table.parquet": (b"PAR1xxxx", "must be a whole file"),
    "table.arrow": (b"ARROW1xxxxxxxxx", "must be a whole file"),
    "table.csv.gz": (b"late,x\n1,2\n", "Not a gzipped file"),
    "cut.csv.gz": (gzip.compress(b"late,x,m\n" + ROWS * 100)[:200], "must be a whole file"),
    "table.xlsx": (b"", "must be a CSV, Parquet or Arrow file"),
}


def said_of(capsys, folder, *arguments):
    """What the command says, with nothing left behind."""
    before = set(folder.iterdir())
    assert main(["fit", *arguments, "--store", str(folder / "run.zarr")]) == 2
    assert set(folder.iterdir()) == before
    said = capsys.readouterr()
    assert said.err.startswith("amagold fit: ")
    assert said.err.count("\n") == 1
    assert not said.out
    return said.err


@pytest.mark.parametrize("name", FILES)
def test_one_clear_line(name, tmp_path, capsys):
    content, formula, words = FILES[name]
    file = tmp_path / "table.csv"
    file.write_bytes(content)
    assert words in said_of(capsys, tmp_path, str(file), formula)


@pytest.mark.parametrize("name", OTHERS)
def test_other_files_are_said_to_be_broken(name, tmp_path, capsys):
    content, words = OTHERS[name]
    (tmp_path / name).write_bytes(content)
    assert words in said_of(capsys, tmp_path, str(tmp_path / name), "late ~ x")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--prior", "x=normal(0)(1)"], "prior must be"),
        (["--prior", "speed=normal(0, 1)"], "priors must speak of the terms 'Intercept', 'x'"),
        (["--family", "poisson", "--prior", "x=horseshoe(1)"], "not known yet"),
    ],
)
def test_options_are_checked(arguments, words, tmp_path, capsys):
    file = tmp_path / "table.csv"
    file.write_bytes(WHOLE)
    assert words in said_of(capsys, tmp_path, str(file), "late ~ x", *arguments)


def test_hostile_names_are_shown_harmless(tmp_path, capsys):
    file = tmp_path / "table.csv"
    file.write_bytes(b"late,\x1b[31mred\n1,2\n")
    assert "\x1b" not in said_of(capsys, tmp_path, str(file), "late ~ x")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["empty", "Latin-1", "text in numbers", "one class"])
def test_a_process_of_its_own_says_the_same(name, tmp_path):
    content, formula, words = FILES[name]
    (tmp_path / "table.csv").write_bytes(content)
    start = "import sys; from amagold.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", start, "fit", "table.csv", formula]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, env=os.environ)
    assert done.returncode == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.count("\n") == 1
