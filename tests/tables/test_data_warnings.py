"""What a table cannot say is said: collinear terms, and classes that a term tells apart."""

import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
nw = pytest.importorskip("narwhals")

from expanded_terms import expanded  # noqa: E402

from amagold.tables._data_warnings import _gram, levels_without_events, light_weights  # noqa: E402
from amagold.tables._formula_text import parsed_formula  # noqa: E402
from amagold.tables._scatter_check import check_scatter  # noqa: E402
from amagold.tables._terms import terms_of  # noqa: E402

NUM_ROWS = 200


def table():
    generator = np.random.default_rng(2)
    x, month = generator.normal(7.0, 2.0, NUM_ROWS), generator.integers(1, 5, NUM_ROWS)
    return pandas.DataFrame(
        {
            "y": generator.integers(0, 2, NUM_ROWS),
            "x": x,
            "again": x,
            "line": 2.0 * x + 1.0,
            "near": x + 1e-3 * generator.normal(size=NUM_ROWS),
            "month": month,
            "named": np.array(["", "a", "b", "c", "d"])[month],
            "side": np.where(np.arange(NUM_ROWS) < 5, "few", "many"),
        }
    )


def doubts(right, frame=None, has_classes=True):
    frame = table() if frame is None else frame
    classes = frame.y.to_numpy(float) if has_classes else None
    return terms_of(parsed_formula(f"y ~ {right}"), nw.from_native(frame), classes)[0].doubts


@pytest.mark.parametrize(
    ("right", "names"),
    [
        ("x + again", "a combination of the coefficients of 'x', 'again'"),
        ("x + line + C(month)", "a combination of the coefficients of 'x', 'line' makes"),
        ("C(month) + named + x", "3 combinations of the coefficients of 'C(month)', 'named' makes"),
        ("x:C(month) + x:named", "combinations of the coefficients of"),
    ],
)
def test_collinear_terms_are_named(right, names):
    (said,) = doubts(right)
    assert names in said


@pytest.mark.parametrize("right", ["x + near", "x * C(month)", "0 + named + x", "1", "bs(x, df=4)"])
def test_terms_that_are_apart_are_not(right):
    assert doubts(right) == ()


def test_sums_of_products_are_those_of_the_expanded_matrix():
    coded = terms_of(parsed_formula("y ~ near * C(month) + named"), nw.from_native(table()))[1]
    ones = np.ones((NUM_ROWS, 1))
    numbers = coded.numbers - coded.numbers.mean(axis=0)
    matrix = np.concatenate([ones, numbers / numbers.std(axis=0), expanded(coded)[:, 1:]], axis=1)
    np.testing.assert_allclose(_gram(coded, True), matrix.T @ matrix, rtol=1e-6, atol=1e-6)


def test_separated_levels_and_numbers_are_named():
    frame = table()
    frame.loc[frame.side == "few", "y"] = 1
    (said,) = doubts("C(side, contr.treatment(base='many')) + x", frame)
    assert '[T.few]" tells apart; how far' in said
    frame["y"] = (frame.x > 7.0).astype(int)
    (said,) = doubts("x", frame)
    assert "'x' tells apart" in said
    assert doubts("x", frame, has_classes=False) == ()


def test_weights_that_were_divided_by_their_sum_are_named():
    (said,) = light_weights(np.full(NUM_ROWS, 1.0 / NUM_ROWS), 3)
    assert "they add up to 1, so that all rows together count as so many" in said
    assert light_weights(np.ones(NUM_ROWS), 3) == []
    assert light_weights(None, 3) == []


def test_levels_without_events_are_named():
    frame = table()
    counts = np.where(frame.named == "b", 0, 1 + np.arange(NUM_ROWS) % 3)
    coded = terms_of(parsed_formula("y ~ named + x"), nw.from_native(frame))[1]
    (said,) = levels_without_events(coded, counts)
    assert "'named[T.b]' tells apart" in said
    assert levels_without_events(coded, counts + 1) == []


def test_outcomes_that_the_terms_say_exactly_are_refused():
    frame = table()
    coded = terms_of(parsed_formula("y ~ near + named"), nw.from_native(frame))[1]
    exact = (3.0 - 2.0 * frame.near + (frame.named == "b")).to_numpy()
    with pytest.raises(ValueError, match="outcome 'z' must scatter about what the terms say"):
        check_scatter("z", coded, exact)
    noise = np.random.default_rng(0).normal(size=NUM_ROWS)
    check_scatter("z", coded, exact + 1e-4 * noise)
    odd = exact.copy()
    odd[7] += 1.0  # one row of all, which some rows do not show
    check_scatter("z", coded, odd)
