"""Codes looked up for the different rows of a term are formulaic's matrix of all rows."""

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
formulaic = pytest.importorskip("formulaic")
nw = pytest.importorskip("narwhals")

from expanded_terms import expanded  # noqa: E402

from amagold.tables._formula_text import parsed_formula  # noqa: E402
from amagold.tables._terms import terms_of  # noqa: E402

NUM_ROWS = 400
NARROW = (
    "I(a * a)",
    "I(a**3)",
    "a:b",
    "I(b - 200)",
    "I(a * b):C(month)",
    "scale(a * b)",
    "C(b - 200)",
)
RIGHT_SIDES = (
    "x + C(month) + origin",
    "0 + C(month) + origin + np.sqrt(age)",
    "origin * C(month) + x:origin",
    "C(month):x",
    "C(month):log(age) + bs(x, df=4)",
    "C(month, contr.treatment(base=3)) + flag + 2:x",
    "C(month, contr.sum) + size",
    "C(month % 2):origin:x + center(x) + poly(age, 2)",
    "scale(x):C(month) + C(flag) + size:flag",
    "C(origin, levels=['LGA', 'JFK', 'EWR']) + `odd name [1]` + I(`odd name [1]`**2)",
    "x + C(date)",
    "bs(x, df=4):C(month)",
    "month:C(month)",
)


def table(seed=0):
    generator = np.random.default_rng(seed)
    days = np.datetime64("2024-01-01") + generator.integers(0, 3, NUM_ROWS)
    return pandas.DataFrame(
        {
            "y": generator.normal(size=NUM_ROWS),
            "x": generator.normal(5.0, 2.0, NUM_ROWS),
            "month": generator.integers(1, 5, NUM_ROWS),
            "origin": generator.choice(["JFK", "LGA", "EWR"], NUM_ROWS),
            "age": generator.random(NUM_ROWS) + 1.0,
            "flag": generator.random(NUM_ROWS) < 0.3,
            "size": pandas.Categorical(
                generator.choice(["small", "large"], NUM_ROWS), ["small", "huge", "large"]
            ),
            "odd name [1]": generator.normal(size=NUM_ROWS),
            "date": days.astype("datetime64[ns]"),
        }
    )


def assert_same(coded, terms, matrix):
    columns = list(matrix.model_spec.column_names)
    wanted = {name: matrix.iloc[:, place] for place, name in enumerate(columns)}
    wanted.pop("Intercept", None)
    assert set(coded.names) == set(wanted)
    for name, found in zip(coded.names, expanded(coded).T, strict=True):
        np.testing.assert_allclose(found, np.asarray(wanted[name], float), rtol=1e-6, atol=1e-6)
    assert sum(len(term.places) for term in terms) == len(columns)


@pytest.mark.parametrize("right", RIGHT_SIDES)
@pytest.mark.filterwarnings("ignore")
def test_codes_are_formulaics_matrix(right):
    frame = table()
    terms, coded = terms_of(parsed_formula(f"y ~ {right}"), nw.from_native(frame))
    matrix = formulaic.model_matrix(right, frame, na_action="raise")
    assert_same(coded, terms.terms, matrix)
    # further rows are treated as the first ones were
    further = table(1)
    further["x"] = further.x.clip(frame.x.min(), frame.x.max())
    assert_same(
        terms.coded(nw.from_native(further)),
        terms.terms,
        matrix.model_spec.get_model_matrix(further),
    )


def test_factors_are_codes_and_few_columns_are_numbers():
    """No term of factors is expanded, unless its contrasts are."""
    text = "y ~ x + origin * C(month) + x:origin + flag"
    coded = terms_of(parsed_formula(text), nw.from_native(table()))[1]
    assert coded.numbers.shape[1] == 2
    assert coded.sizes == (2, 3, 6, 2)
    assert coded.multiplied_by == (None, None, None, 0)


@pytest.mark.parametrize("right", NARROW)
def test_whole_numbers_do_not_overflow(right):
    """Columns of few bytes, as files have them, are computed with as wide numbers."""
    wide = table().assign(a=np.arange(NUM_ROWS) * 80, b=np.arange(NUM_ROWS) % 256)
    narrow = wide.astype({"a": np.int16, "b": np.uint8})
    wanted, found = (
        terms_of(parsed_formula(f"y ~ {right}"), nw.from_native(frame)) for frame in (wide, narrow)
    )
    assert found[0].terms == wanted[0].terms
    np.testing.assert_allclose(expanded(found[1]), expanded(wanted[1]), rtol=1e-12)
    assert np.abs(expanded(found[1])).max() >= 1.0


def test_products_of_flags_count():
    frame = table().assign(other=np.arange(NUM_ROWS) % 3 == 0)
    coded = terms_of(parsed_formula("y ~ I(flag + other) + I(flag - other)"), nw.from_native(frame))
    wanted = [frame.flag * 1 + frame.other * 1, frame.flag * 1 - frame.other * 1]
    np.testing.assert_array_equal(coded[1].numbers, np.stack(wanted, axis=1))
