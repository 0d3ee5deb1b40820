"""Broken tables and formulas: one clear line, exit code 2, nothing left behind."""

import datetime
import gzip
import io
import os
import subprocess
import sys

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")
pyarrow = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

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
    names = b",".join(b"c%d" % place for place in range(10_000))
    return names + b"\n" + b"1," * 9_999 + b"0\n" + b"0," * 9_999 + b"1\n"


def parquet_of(num_rows=NUM_ROWS, twice=False, **columns):
    """A Parquet file with these columns beside the outcome; without any for None."""
    whole = {} if num_rows is None else {"late": [0, 1] * (num_rows // 2), **columns}
    names = [*whole, *(["x"] if twice else [])]
    table = pyarrow.Table.from_arrays([pyarrow.array(whole[name]) for name in names], names=names)
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return buffer.getvalue()


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
FILES |= {
    "empty formula": (WHOLE, "", "formula must be a text such as 'late ~ distance"),
    "all columns": (WHOLE, "late ~ .", "(--outcome late) for all other columns"),
    "null character": (WHOLE, "late ~ x\0", "formula must be a text such as"),
    "no column": (WHOLE, "late ~ C()", "'C()' reads none"),
    "a number for a term": (WHOLE, "late ~ I(5)", "'I(5)' reads none"),
    "a list of columns": (WHOLE, "late ~ I([x, m])", "must not hold lists of columns"),
    "code": (WHOLE, "late ~ I(__import__('os').system('touch made'))", "must not reach into"),
    "code in braces": (WHOLE, "late ~ {open('made', 'w')}", "must not call 'open'"),
    "code for outcome": (WHOLE, "{open('made', 'w')} ~ x", "must have a column before"),
    "for ever": (WHOLE, "late ~ I(x + 9**9**9**9)", "arithmetic of columns and finite numbers"),
    "for ever by a function": (WHOLE, "late ~ I(x + abs(9**8))", "columns and finite numbers"),
    "for ever by I": (WHOLE, "late ~ I(x + 9 ** I(9**8))", "columns and finite numbers"),
    "a long text": (WHOLE, "late ~ I(x + 'a' * 10**12)", "columns and finite numbers"),
    "many products": (WHOLE, "late ~ (x + m)**40", "at most 100,000 products of them"),
    "many interactions": (
        WHOLE,
        "late ~ " + " * ".join(f"c{place}" for place in range(40)),
        "at most 100,000 products of them",
    ),
    "many splines": (WHOLE, "late ~ bs(x, df=10**8)", "must make at most 1,000 columns"),
    "many terms": (
        many_columns(),
        "c0 ~ " + " + ".join(f"c{place}" for place in range(1, 10_000)),
        "must name at most 5,000 columns",
    ),
    "a one for a name": (b"late,1\n1,2\n0,3\n", "--outcome=late", "other than '1', got '1'"),
    "a one in a formula": (b"late,1\n1,2\n0,3\n", "late ~ `1`", "other than '1', got '1'"),
    "thousands": (
        changed(x=[f"{row + 1},000" for row in range(NUM_ROWS)]),
        "late ~ x",
        "without signs between thousands",
    ),
    "old line ends": (WHOLE.replace(b"\n", b"\r"), "late ~ y", "it has 'late', 'x', 'm'"),
    "UTF-32": (("late,x\n" * 9).encode("utf-32"), "late ~ x", "is one in UTF-32"),
    "UTF-16 without a mark": (("late,x\n" * 9).encode("utf-16-le"), "late ~ x", "in UTF-16"),
    "null bytes": (bytes(1000), "late ~ x", "must be a text in UTF-8"),
    "a quote that stays open": (
        b"late,x,name\n" + b"".join(b'%d,%d,"a\n' % (row % 2, row) for row in range(9)),
        "late ~ x",
        "must close what it quotes",
    ),
    "a name without end": (b"a" * 200_000 + b",late\n1,2\n", "late ~ x", "field larger than"),
    "mixed types": (changed(x=["a", 1.5, "2024-01-01"] * 20), "late ~ I(x * 2)", "x * 2"),
    "twice the same": (changed(), "late ~ x + x + nothing", "'nothing' is none"),
    "the outcome in other units": (
        changed(late=np.arange(NUM_ROWS) * 1.8 + 32, celsius=np.arange(NUM_ROWS)),
        ["late ~ x + celsius", "--family", "linear"],
        "must scatter about what the terms say",
    ),
    "too wide an outcome": (
        changed(late=np.arange(NUM_ROWS) * 1e200),
        ["late ~ x", "--family", "linear"],
        "must have a width between",
    ),
    "too wide a gamma outcome": (
        changed(late=(1 + np.arange(NUM_ROWS)) * 1e200),
        ["late ~ x", "--family", "gamma"],
        "outcome 'late' must have a largest number between",
    ),
}
ROWS_OF = {
    "negative weights": (["--weights", "negative"], "weights must not be negative, got -1"),
    "no weights": (["--weights", "nothing"], "zeros alone"),
    "weights of texts": (["--weights", "text"], "weights must be a column of numbers"),
    "endless weights": (["--weights", "endless"], "weights must be finite"),
    "heavy weights": (["--weights", "heavy"], "lie between 1e-18 and 1e+09, got 1e+300"),
    "light weights": (["--weights", "light"], "lie between 1e-18 and 1e+09, got 1e-300"),
    "unknown weights": (
        ["--weights", "speed"],
        "table must have all columns that the formula, weights and the like",
    ),
    "huge offsets": (["--offset", "heavy"], "offset must lie within 60 of zero"),
    "endless offsets": (["--offset", "endless"], "offset must be finite"),
    "unknown offsets": (["--offset", ""], "'' is none"),
    "no exposure": (["--family", "poisson", "--exposure", "nothing"], "exposure must be above"),
    "no trials": (["--trials", "nothing"], "trials must be whole numbers from 1, got 0"),
    "trials of others": (["--family", "linear", "--trials", "w"], "must not be given for linear"),
}
OTHERS = {
    "table.parquet": (b"PAR1xxxx", "must be a whole file"),
    "table.arrow": (b"ARROW1xxxxxxxxx", "must be a whole file"),
    "table.csv.gz": (b"late,x\n1,2\n", "Not a gzipped file"),
    "cut.csv.gz": (gzip.compress(b"late,x,m\n" + ROWS * 100)[:200], "must be a whole file"),
    "table.xlsx": (b"", "must be a CSV, Parquet or Arrow file"),
    "cut.parquet": (parquet_of(x=list(range(60)))[:-20], "must be a whole file"),
    "empty.parquet": (b"", "must be a whole file"),
    "text.parquet": (WHOLE, "must be a whole file"),
    "no_rows.parquet": (parquet_of(0, x=[]), "must have at least one row"),
    "no_columns.parquet": (parquet_of(None), "'late' is none: it has no columns"),
    "twice.parquet": (parquet_of(x=[1] * 60, twice=True), "'x' is there twice"),
    "lists.parquet": (parquet_of(x=[[1, 2]] * 60), "'x' is of type List"),
    "records.parquet": (parquet_of(x=[{"a": 1}, {"a": 2}] * 30), "'x' is of type Struct"),
    "nothing.parquet": (parquet_of(x=[None] * 60), "60 in 'x'"),
    "times.parquet": (parquet_of(x=[datetime.time(1), datetime.time(2)] * 30), "dates or times"),
    "lists_for_outcome.parquet": (parquet_of(late=[[1]] * 60, x=[1] * 60), "'late' is of type"),
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
    given = [formula] if isinstance(formula, str) else formula
    assert words in said_of(capsys, tmp_path, str(file), *given)


@pytest.mark.parametrize("name", ROWS_OF)
def test_what_rows_count_is_checked(name, tmp_path, capsys):
    arguments, words = ROWS_OF[name]
    file = tmp_path / "table.csv"
    file.write_bytes(
        changed(
            **{"w": 1, "nothing": 0, "negative": numbers(-1.0), "endless": numbers(np.inf)},
            **{"text": "a", "heavy": 1e300, "light": 1e-300},
        )
    )
    assert words in said_of(capsys, tmp_path, str(file), "late ~ x", *arguments)


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
        (["--family", "poisson", "--prior", "x=horseshoe(-1)"], "scale"),
    ],
)
def test_options_are_checked(arguments, words, tmp_path, capsys):
    file = tmp_path / "table.csv"
    file.write_bytes(WHOLE)
    assert words in said_of(capsys, tmp_path, str(file), "late ~ x", *arguments)


def test_the_words_of_a_factor_of_records(tmp_path, capsys):
    (tmp_path / "t.parquet").write_bytes(parquet_of(x=[{"a": 1}, {"a": 2}] * 30))
    said = said_of(capsys, tmp_path, str(tmp_path / "t.parquet"), "late ~ C(x)")
    assert "'x' is of type Struct" in said


@pytest.mark.parametrize("kind", ["empty", "strange", "damaged", "differing", "pipe", "dangling"])
def test_what_is_no_file(kind, tmp_path, capsys):
    place = tmp_path / "table.csv"
    if kind == "pipe":
        os.mkfifo(place)
    elif kind == "dangling":
        place.symlink_to(tmp_path / "nowhere")
    else:
        place = tmp_path / "folder"
        place.mkdir()
    if kind == "strange":
        (place / "notes.md").write_text("late,x")
    if kind in ("damaged", "differing"):
        (place / "a.csv").write_bytes(WHOLE)
        (place / "b.csv").write_bytes(b"" if kind == "damaged" else changed(late="text"))
    assert " must " in said_of(capsys, tmp_path, str(place), "late ~ x")


def test_a_file_that_may_not_be_read(tmp_path, capsys, monkeypatch):
    file = tmp_path / "table.csv"
    file.write_bytes(WHOLE)
    file.chmod(0)
    if os.access(file, os.R_OK):  # this user may read everything

        def refused(path, mode):
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr("amagold.tables._read_text.open", refused, raising=False)
    assert "Permission denied" in said_of(capsys, tmp_path, str(file), "late ~ x")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--report", "no/page.html"],
        ["--report", "page.txt"],
        ["--store", "no/run.zarr"],
        ["--store", "table.csv"],
        ["--store", ""],
        ["--num-samples", "-1"],
        ["--seed", "-1"],
    ],
)
def test_where_draws_would_go_is_checked_first(arguments, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "table.csv").write_bytes(WHOLE)
    assert main(["fit", "table.csv", "late ~ x", *arguments]) == 2
    assert [file.name for file in tmp_path.iterdir()] == ["table.csv"]
    said = capsys.readouterr()
    assert said.err.count("\n") == 1
    assert " must " in said.err


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
