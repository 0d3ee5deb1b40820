"""The same table from every library and file gives the same rows; so does every kind of column."""

import gzip
from decimal import Decimal

import jax
import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pyarrow = pytest.importorskip("pyarrow")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")

from amagold.tables._fit import model_of  # noqa: E402
from amagold.tables._read_table import read_table  # noqa: E402

NUM_ROWS = 90
FORMULA = "late ~ x + origin + flag + C(month)"


def table():
    generator = np.random.default_rng(1)
    return pandas.DataFrame(
        {
            "late": generator.integers(0, 2, NUM_ROWS),
            "x": generator.normal(size=NUM_ROWS),
            "origin": generator.choice(["JFK", "LGA", "EWR"], NUM_ROWS),
            "flag": generator.random(NUM_ROWS) < 0.5,
            "month": generator.integers(1, 4, NUM_ROWS),
        }
    )


def model(given, formula=FORMULA):
    return model_of(formula, read_table(given), "logistic", None, False, None)


def assert_same(found, wanted):
    assert found.terms.terms == wanted.terms.terms
    pairs = zip(*(jax.tree.leaves(each.target.data) for each in (found, wanted)), strict=True)
    for ours, theirs in pairs:
        np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def as_polars():
    polars = pytest.importorskip("polars")
    return polars.DataFrame(table().to_dict("list"))


def as_duckdb():
    duckdb = pytest.importorskip("duckdb")
    frame = table()  # noqa: F841 - the query reads it
    return duckdb.sql("select * from frame")


FRAMES = {
    "polars": as_polars,
    "polars lazy": lambda: as_polars().lazy(),
    "pyarrow": lambda: pyarrow.Table.from_pandas(table()),
    "DuckDB": as_duckdb,
}


@pytest.mark.parametrize("library", FRAMES)
def test_libraries_are_alike(library):
    assert_same(model(FRAMES[library]()), model(table()))


def test_files_are_alike(tmp_path):
    from pyarrow import feather, ipc

    frame, wanted = table(), model(table())
    arrow = pyarrow.Table.from_pandas(frame)
    text = frame.to_csv(index=False)
    (tmp_path / "a.csv").write_text(text)
    (tmp_path / "b.CSV").write_bytes(b"\xef\xbb\xbf" + text.encode())
    (tmp_path / "b2.csv").write_bytes(text.encode().replace(b"\n", b"\r"))
    (tmp_path / "b3.csv").write_bytes(text.encode().replace(b"\n", b"\r\n"))
    (tmp_path / "c.csv.gz").write_bytes(gzip.compress(text.encode()))
    frame.to_csv(tmp_path / "d.tsv", index=False, sep="\t")
    frame.to_csv(tmp_path / "e.txt", index=False, sep="|")
    frame.to_parquet(tmp_path / "f.parquet", row_group_size=40)
    feather.write_feather(arrow, tmp_path / "g.feather")
    with ipc.new_stream(tmp_path / "h.arrow", arrow.schema) as stream:
        stream.write_table(arrow)
    files = sorted(tmp_path.iterdir())
    assert len(files) == 10
    for file in files:
        assert_same(model(file), wanted)
        few = read_table(file, columns=["late", "x"])
        assert set(few.columns) >= {"late", "x"}


def test_tables_of_many_files_are_alike(tmp_path):
    import amagold

    frame, wanted = table(), model(table())
    several = tmp_path / "several"
    several.mkdir()
    empty = tmp_path / "empty"
    empty.mkdir()
    frame[:50].to_parquet(several / "1.parquet")
    frame[50:].to_parquet(several / "2.parquet")
    frame.to_parquet(tmp_path / "one.parquet")
    store = amagold.data.prepare(tmp_path / "one.parquet", tmp_path / "rows", progress=False)
    for folder in (several, store):
        assert_same(model(folder), wanted)
    opened = amagold.data.open(store)
    formula = "late ~ x + C(month)"
    few = read_table(opened, columns=["late", "x", "month"])
    found = model_of(formula, few, "logistic", None, False, None)
    assert_same(found, model(frame, formula))
    with pytest.raises(ValueError, match="give the folder of the row store"):
        read_table(opened, columns=["origin"])
    with pytest.raises(ValueError, match="holds none"):
        read_table(empty)


COLUMNS = {
    "whole numbers with gaps": ("x", pandas.array(np.arange(NUM_ROWS) % 7, "Int64"), "float64"),
    "decimals": ("x", [Decimal(row) / 4 for row in range(NUM_ROWS)], "float64"),
    "float32": ("x", np.arange(NUM_ROWS, dtype=np.float32), "float64"),
    "half precision": ("x", np.arange(NUM_ROWS, dtype=np.float16), "float64"),
    "bytes": ("x", np.arange(NUM_ROWS, dtype=np.uint8), "float64"),
    "booleans with gaps": ("flag", pandas.array([True, False, False] * 30, "boolean"), "bool"),
    "objects of booleans": ("flag", np.array([True, False, True] * 30, object), "bool"),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_columns_of_other_types_are_alike(kind):
    name, values, plain = COLUMNS[kind]
    odd = table().assign(**{name: values})
    usual = table().assign(**{name: np.asarray(values).astype(plain)})
    assert_same(model(odd), model(usual))


def test_declared_levels_keep_their_order():
    order = ["LGA", "nowhere", "JFK", "EWR"]
    frame = table().assign(origin=pandas.Categorical(table().origin, order))
    forms = [frame, pyarrow.Table.from_pandas(frame)]
    for given in forms:
        (origin,) = (term for term in model(given).terms.terms if term.name == "origin")
        assert origin.levels == ("nowhere", "JFK", "EWR")


def test_views_of_texts_are_texts():
    given = pyarrow.Table.from_pandas(table(), preserve_index=False)
    place = given.schema.get_field_index("origin")
    views = given.column(place).cast(pyarrow.string_view())
    assert_same(model(given.set_column(place, "origin", views)), model(table()))


def test_quoted_line_ends_are_part_of_a_text(tmp_path):
    """An odd quote within a word is one too; that rows get lost is what is refused."""
    frame = table().assign(note='two\nlines, "quoted"')
    frame.to_csv(tmp_path / "a.csv", index=False)
    plain = table().assign(note="a 5 inch pipe").to_csv(index=False)
    (tmp_path / "b.csv").write_text(plain.replace(" inch", '"', 1))
    for file in ("a.csv", "b.csv"):
        assert_same(model(tmp_path / file), model(table()))


def test_parts_of_dictionaries_are_joined():
    parts = [pyarrow.array(["b", "a"]), pyarrow.array(["c", "a"])]
    column = pyarrow.chunked_array([part.dictionary_encode() for part in parts])
    given = pyarrow.table({"late": [0, 1, 1, 0], "o": column})
    found = model(given, "late ~ o").target.data.predictors
    by_level = {"b": -1, "a": 0, "c": 1}
    assert found.codes[:, 0].tolist() == [by_level[level] for level in ("b", "a", "c", "a")]


def test_mixed_columns_are_refused():
    frame = table().assign(origin=["a", 5, 2.5] * 30)
    with pytest.raises(ValueError, match="'origin' holds float and int and str"):
        model(frame)


def test_levels_of_one_row_and_ten_thousand_levels():
    levels = [f"level {number:05d}" for number in range(10_000)]
    frame = pandas.DataFrame({"late": [0, 1] * 10_000, "o": levels * 2})
    terms = model(frame, "late ~ C(o)").terms.terms
    assert len(terms[1].places) == 9_999


def test_names_that_python_does_not_take():
    odd = "my x.1 [a] 'q' ünï ~ | +"
    frame = table().rename(columns={"x": odd, "late": "is late?"})
    found = model(frame, f"`is late?` ~ `{odd}` + I(`{odd}`**2) + C(month)")
    assert [term.name for term in found.terms.terms][:2] == ["Intercept", odd]
    by_outcome = model_of(None, read_table(frame), "logistic", "is late?", False, None)
    assert {term.name for term in by_outcome.terms.terms} >= {odd, "flag", "month"}
