"""The report of a run: what it says, and that a hostile name does nothing."""

import html
import re

import numpy as np
import pytest
from browser import look_at
from invented_run import invented_run

pandas = pytest.importorskip("pandas")
pytest.importorskip("jinja2")

from amagold.cli import main  # noqa: E402
from amagold.core.printable import printable  # noqa: E402
from amagold.report._chart_scale import scale_of  # noqa: E402
from amagold.report._formula_words import listed, term_words  # noqa: E402
from amagold.report._interval_chart import Estimate, interval_chart  # noqa: E402
from amagold.report._page_content import PageContent  # noqa: E402
from amagold.report._rounded_numbers import (  # noqa: E402
    decimals_of,
    percent,
    plain,
    readable,
    rounded,
    short,
)
from amagold.report._run_page import report_text  # noqa: E402
from amagold.report._table_facts import (  # noqa: E402
    ColumnFacts,
    TableFacts,
    facts_from_json,
)

FACTS = TableFacts(
    num_read=95,
    num_used=90,
    num_distinct=None,
    outcome="late",
    classes=("no", "yes"),
    columns=(
        ColumnFacts("late", (), (), (("no", 60), ("yes", 30)), 2),
        ColumnFacts("distance", (500.0, 120.0, 20.0, 2000.0), (1, 5, 3), (), 0),
        ColumnFacts("month", (), (), (("1", 40), ("2", 30), ("3", 20)), 3),
    ),
    spreads={"distance": 2.0},
    references={"C(month)": "1"},
)
LATE = {"C(month)": ["2", "3"], "Intercept": None, "distance": None}
HOSTILE = [
    "<script>alert(1)</script>",
    '"><img src=x onerror=alert(2)>',
    "</style></title><svg onload=alert(3)>",
    "'{{ 7*7 }}{% raw %}&lt;b&gt;",
    "javascript:alert(4)//\u202e",
]


def fitted(**options):
    attributes = {
        "formula": "late ~ distance + C(month)",
        "family": "logistic",
        "table": FACTS.to_json(),
    }
    return invented_run(LATE, attributes, **options)


def text_of(page):
    """What a reader sees, without the signs of HTML."""
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", body).split()))


def test_the_page_of_a_fitted_run_has_every_part():
    page = report_text(fitted())
    told = text_of(page)
    for words in [
        "How do the odds that late is yes change with distance and month",
        "90 rows of 95 ; 5 were left out".replace(" ;", ";"),
        "The log odds that late is yes are the intercept plus",
        "N(0, 15,000\u00b2)",
        "month, compared with 1",
        "Odds ratio",
        "distance per 2",
        "In 2 of 3 bins the observed mean is where the model expects it",
        "the model misses it",
        "R-hat at most",
        "Gaussian enough for means.",
        "amagold.fit('late ~ distance + C(month)', table, 'logistic'",
        "f" * 64,
    ]:
        assert words in told, words
    # nothing is fetched, and nothing runs
    assert "http://" not in page.replace('http-equiv="', "")
    assert "https://" not in page
    assert "<script" not in page
    assert " style=" not in page


def test_ratios_and_differences_are_those_of_the_draws():
    run = fitted()
    content = PageContent(run)
    groups = {group.title: group for group in content.coefficients}
    (row, *_) = groups["month, compared with 1"].rows
    draws = np.asarray(run.posterior["C(month)"])[:, :, 0].reshape(-1)
    low, high = np.quantile(draws, [0.05, 0.95])
    assert row.mean == f"{draws.mean():.2f}"
    assert row.ends == f"{low:.2f} to {high:.2f}"
    assert row.ratio.startswith(f"{np.exp(draws.mean()):.2g}")
    assert row.share_above == percent(float(np.mean(draws > 0.0)))
    # the picture is per standard deviation, the table per unit
    chart = groups["Numeric predictors"].chart
    slope = np.asarray(run.posterior["distance"]).mean()
    assert chart.rows[0].words.startswith(short(float(np.exp(2.0 * slope)), 2))
    assert chart.line == next(tick.place for tick in chart.ticks if tick.label == "1")


def test_a_run_of_an_own_target_has_no_parts_of_a_table():
    told = text_of(report_text(invented_run({"theta": ["0", "1"], "scale": None})))
    assert "Parameters" in told
    for words in ("Coefficients", "Average effects", "Does the model fit", "The data", "rows"):
        assert words not in told


def test_places_keep_their_numbers_however_many_there_are(monkeypatch):
    run = invented_run({"theta": [str(number) for number in range(250)]})
    run._groups["posterior"] = run.posterior.drop_vars("theta_dim")
    found = PageContent(run).parameters["theta"]
    assert [each.level for each in found] == [str(number) for number in range(250)]
    draws = np.asarray(run.posterior["theta"])
    assert found[249].mean == pytest.approx(draws[:, :, 249].mean())
    # of very many some, by their own numbers
    monkeypatch.setattr("amagold.report._parameters.MOST_PARAMETERS", 200)
    monkeypatch.setattr("amagold.report._parameters.FEW_PARAMETERS", 3)
    few = PageContent(run).parameters["theta"]
    assert [each.level for each in few] == ["0", "124", "249"]
    assert few[1].mean == pytest.approx(draws[:, :, 124].mean())


def test_what_needs_attention_is_said_with_its_remedy():
    warned = fitted(warnings=["small ESS: 12 effective draws; draw more with num_samples"])
    told = text_of(report_text(warned))
    assert "One thing needs attention" in told
    assert "small ESS : 12 effective draws; draw more with num_samples" in told
    assert "Nothing speaks against" in text_of(report_text(fitted()))
    stuck = fitted()
    stuck.sample_stats["diverging"][:] = True
    assert "out of reach" in text_of(report_text(stuck))


def test_cutpoints_are_no_effects():
    run = invented_run(
        {"x": None, "threshold": ["0", "1", "2"]}, {"formula": "grade ~ x", "family": "ordinal"}
    )
    content = PageContent(run)
    assert content.terms == ["x"]
    assert content.num_effects == 1
    *_, last = content.coefficients
    assert last.chart is None
    assert [row.name for row in last.rows] == [f"threshold[{place}]" for place in range(3)]
    assert {row.ratio for row in last.rows} == {""}


def test_factors_of_many_levels_show_those_that_are_surely_different():
    levels = [f"level {number}" for number in range(300)]
    run = invented_run(
        {"Intercept": None, "C(month)": levels},
        {"formula": "late ~ C(month)", "family": "linear"},
        means={"C(month)": np.where(np.arange(300) == 123, 5.0, 0.0)},
    )
    (group, _) = PageContent(run).coefficients
    assert len(group.chart.rows) == 14
    assert group.chart.rows[0].label == "level 123"
    assert len(group.rows) == 300
    assert group.num_left_out == 286


def test_hostile_names_are_texts(tmp_path):
    one, two, three, four, five = HOSTILE
    facts = FACTS._replace(
        outcome=one,
        classes=(two, three),
        columns=(
            ColumnFacts(one, (), (), ((two, 60), (three, 30)), 2),
            ColumnFacts(four, (), (), ((five * 30, 60), (two, 30)), 2),
        ),
        spreads={four: 2.0},
        references={two: four},
    )
    run = invented_run(
        {"Intercept": None, four: None, two: [one, three, five * 30]},
        {
            "formula": f"{one} ~ {four} + {two}",
            "family": "logistic",
            "table": facts.to_json(),
            "notes": HOSTILE,
            "versions": dict(zip(HOSTILE, HOSTILE, strict=True)),
        },
        warnings=[f"{one}: {two}", *HOSTILE],
    )
    page = run.report(tmp_path / "report.html")
    source = page.read_text()
    assert "<script" not in source
    assert "<img" not in source
    assert source.count("<style") == source.count("</style>") == 1
    assert source.count("<title>") == source.count("</title>")
    assert "\u202e" not in source
    for width in (1200, 390):
        seen = look_at(page, width)
        assert seen.complaints == []
        assert seen.requests == []
        assert seen.num_scripts == 0
        assert seen.overflow <= 0, "the page scrolls sideways"
        for name in HOSTILE:
            assert printable(name) in seen.text


def test_stored_facts_of_another_form_are_not_believed():
    stored = FACTS.to_json()
    assert facts_from_json(stored) == FACTS
    for name, wrong in [
        ("num_read", -1),
        ("num_used", "many"),
        ("columns", [{"name": "late"}]),
        ("classes", [1, 2]),
        ("spreads", {"distance": float("nan")}),
        ("outcome", None),
    ]:
        assert facts_from_json({**stored, name: wrong}) is None
    assert facts_from_json(None) is None
    assert facts_from_json([1, 2]) is None


def test_a_table_that_is_not_at_hand_is_asked_for():
    class Forgetful(type(fitted())):
        def effects(self, **options):
            if options.get("table") is None:
                raise ValueError("table must be given")
            return super().effects(**options)

    run = fitted()
    run.__class__ = Forgetful
    assert "--table TABLE" in text_of(report_text(run))
    told = text_of(report_text(run, table="flights.csv"))
    assert "--table TABLE" not in told
    assert run.asked_with == "flights.csv"


@pytest.mark.parametrize("path", ["report.txt", "nowhere/report.html", "", 3])
def test_a_page_that_cannot_be_written_is_said_at_once(tmp_path, monkeypatch, path):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="path must be a file"):
        fitted().report(path)
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_refuses_before_it_fits(tmp_path, capsys):
    table = tmp_path / "table.csv"
    table.write_text("y,x\n0,1\n1,2\n")
    assert main(["fit", str(table), "y ~ x", "--report", str(tmp_path / "no" / "page.html")]) == 2
    assert "report must be a file in a folder that exists" in capsys.readouterr().err
    assert main(["report", str(tmp_path), "--table", str(table)]) == 2
    assert "table must be given with --output" in capsys.readouterr().err


def test_no_digit_is_made_up():
    assert rounded(1.23456, decimals_of(0.003, 0.1)) == "1.23"
    assert rounded(1.23456, decimals_of(0.0003, 0.01)) == "1.235"
    assert rounded(12345.6, decimals_of(30.0, 900.0)) == "12,300"
    # one digit of the spread stays, whatever the error
    assert rounded(0.0312, decimals_of(5.0, 0.02)) == "0.03"
    assert rounded(-0.0001, 2) == "0.00"
    assert rounded(-1.5e-9, 10) == "\N{MINUS SIGN}1.5 \N{MULTIPLICATION SIGN} 10\u207b\u2079"
    assert rounded(float("nan"), 2) == "not finite"
    assert plain(0.5) == "0.5"
    assert plain(20.0) == "20"
    assert percent(0.9999) == "> 99.9%"
    assert percent(1.0) == "100%"
    assert readable("N(0, 1.506e+04^2)") == "N(0, 15,060\u00b2)"
    assert readable("1.2e+02 of 49679 a12345") == "120 of 49,679 a12345"


def test_scales_hold_all_values_and_have_round_ticks():
    scale = scale_of([-0.31, 0.92])
    assert [tick.label for tick in scale.ticks] == [
        *("\N{MINUS SIGN}0.2", "0.0", "0.2", "0.4", "0.6", "0.8"),
    ]
    assert 0.0 < scale.place(-0.31) < scale.place(0.92) < 100.0
    assert scale.place(1e9) == 100.0
    assert len(scale_of([]).ticks) > 1
    estimate = Estimate("a", "", 2.0, 0.5, 1.5, 2.5, 8.0, 1, is_ratio=True)
    chart = interval_chart("ratios", "Odds ratio", [estimate], none=1.0, is_ratio=True)
    assert {"0.5", "1", "2", "5"} <= {tick.label for tick in chart.ticks}
    # on a scale of logarithms 2 is as far from 1 as 1 from 1/2
    (row,) = chart.rows
    assert row.mean - chart.line == pytest.approx(chart.line - row.lower, abs=0.01)
    assert not row.is_clear


def test_formulas_in_words():
    assert term_words("C(month)") == "month"
    assert term_words("C(`a b`, Treatment(1))") == "a b"
    assert term_words("log(age)") == "the logarithm of age"
    assert term_words("bs(age, df=4)") == "a smooth curve of age"
    assert term_words("distance:C(month)") == "distance together with month"
    assert term_words("I(a + b)") == "I(a + b)"
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(list("abcdefghij"), 4) == "a, b, c and 7 more"


@pytest.mark.slow
def test_from_a_file_to_a_page_and_again_from_the_store(tmp_path, capsys):
    generator = np.random.default_rng(0)
    table = pandas.DataFrame(
        {
            "visits": generator.poisson(2.0, 400),
            "age": generator.normal(50.0, 10.0, 400),
            "region": generator.choice(["north", '<img src=x onerror="alert(1)">'], 400),
        }
    )
    table.to_csv(tmp_path / "table.csv", index=False)
    page, again, store = (str(tmp_path / name) for name in ("a.html", "b.html", "run.zarr"))
    words = [str(tmp_path / "table.csv"), "visits ~ age + region", "--family", "poisson"]
    options = ["--store", store, "--report", page, "--num-samples", "300"]
    assert main(["fit", *words, *options]) == 0
    assert main(["report", store, "--output", again]) == 0
    assert "Written to" in capsys.readouterr().out
    for path in (tmp_path / "a.html", tmp_path / "b.html"):
        for width in (1200, 390):
            seen = look_at(path, width)
            assert (seen.complaints, seen.requests, seen.num_scripts) == ([], [], 0)
            assert seen.overflow <= 0
    told, again = (text_of((tmp_path / name).read_text()) for name in ("a.html", "b.html"))
    # the run kept its model and its rows
    assert again == told
    for said in ("rate ratio", "400", "region, compared with", "Was sampling needed?"):
        assert said in told
