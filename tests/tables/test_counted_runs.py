"""Fits with weights and trials, from the table to the stored run, its page and the commands."""

import html
import re
import shutil

import numpy as np
import pytest
from browser import look_at
from false_alarms import PLANTED, threshold

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")
pytest.importorskip("jinja2")

from test_counted_rows import OUTCOMES, repeated, table  # noqa: E402

import amagold  # noqa: E402
from amagold.cli import main  # noqa: E402
from amagold.report._run_page import report_text  # noqa: E402

SHORT = {"num_samples": 100, "num_warmup": 60, "num_chains": 2, "progress": False}
pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")


def text_of(page):
    """What a reader sees, without the signs of HTML."""
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", body).split()))


@pytest.mark.slow
@pytest.mark.parametrize("family", OUTCOMES)
def test_every_family_goes_on_with_weights(family, tmp_path):
    formula, store = f"{OUTCOMES[family]} ~ x + ward", tmp_path / "run"
    run = amagold.fit(formula, table(), family, weights="times", store=store, **SHORT)
    loaded = amagold.load(store)
    pandas.testing.assert_frame_equal(run.effects(), loaded.effects())
    assert np.isfinite(run.effects()["mean"]).all()
    assert len(loaded.contrast("ward", "a", "b")) in (2, 4, 6)
    assert loaded.loo().n_data_points == table().times.sum()
    found = amagold.compare([run, loaded], ["run", "loaded"])
    assert np.isclose(*found["elpd"])
    check = loaded.predictive_check()
    each = 3 if family in ("softmax", "ordinal") else 1
    assert check.calibration["count"].sum() == each * table().times.sum()
    told = text_of(report_text(loaded))
    assert "Left out" not in told
    assert "each as often as its weight says" in told
    assert f"The {(table().times > 0).sum()} stand for {table().times.sum()} observations" in told
    assert f"{(table().times == 0).sum()} were left out because their weight is zero" in told
    assert "values are missing" not in told


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory):
    """A run of trials, with a level that never succeeds, and a number that is there twice."""
    folder = tmp_path_factory.mktemp("doubtful")
    frame = table().assign(again=2.0 * table().x)
    frame.loc[:3, "ward"], frame.loc[:3, "ill"] = "rare", 0
    frame.to_csv(folder / "table.csv", index=False)
    of_rows = {"trials": "persons", "weights": "times"}
    run = amagold.fit(
        "ill ~ x + again + ward", frame, **of_rows, store=folder / "run.zarr", **SHORT
    )
    return run, folder


@pytest.mark.slow
def test_doubts_stay_with_the_stored_run(doubtful):
    run, folder = doubtful
    loaded = amagold.load(folder / "run.zarr")
    again = amagold.load(folder / "run.zarr")
    for found in (run, loaded, again):
        for about in ("Separation: ", "Collinear terms: "):
            assert sum(sentence.startswith(about) for sentence in found.warnings) == 1
    assert loaded.model.terms.doubts == run.model.terms.doubts
    told = text_of(report_text(loaded))
    assert told.count("'ward[T.rare]' tells apart") == 1
    assert told.count("makes no difference to any row") == 1


@pytest.mark.slow
def test_a_run_that_goes_on_has_its_doubts(doubtful, tmp_path):
    frame = pandas.read_csv(doubtful[1] / "table.csv")
    store = tmp_path / "run.zarr"
    run = amagold.fit(
        "ill ~ x + again", frame, trials="persons", store=store, max_time=1e-3, **SHORT
    )
    gone_on = amagold.resume(store, run.model.target, progress=False)
    assert not gone_on.is_partial
    assert sum(sentence.startswith("Collinear terms: ") for sentence in gone_on.warnings) == 1


def test_a_damaged_model_leaves_the_draws(doubtful, tmp_path):
    place = shutil.copytree(doubtful[1] / "run.zarr", tmp_path / "run.zarr")
    (place / ".amagold" / "table").write_bytes(b"nothing")
    loaded = amagold.load(place)
    assert sum(sentence.startswith("damaged model: ") for sentence in loaded.warnings) == 1
    assert loaded.posterior.sizes["draw"] == SHORT["num_samples"]


@pytest.mark.slow
def test_the_page_of_trials_has_every_part(doubtful):
    _, folder = doubtful
    page = amagold.load(folder / "run.zarr").report(folder / "page.html")
    told = text_of(page.read_text())
    counted = table()[table().times > 0]
    for words in (
        "averaged over all trials of the table's rows, each row as often as its weight says",
        "Average difference in the probability that a trial is one of ill",
        "Trials in bins of their prediction",
        "share of successes",
        f"stand for {(counted.times * counted.persons).sum():,} trials",
    ):
        assert words in told, words
    assert "Left out" not in told
    for width in (1200, 390):
        seen = look_at(page, width)
        assert (seen.complaints, seen.requests, seen.num_scripts) == ([], [], 0)
        assert seen.overflow <= 0


@pytest.mark.slow
def test_the_commands_know_weights_and_trials(doubtful, tmp_path, capsys):
    _, folder = doubtful
    store, rows = str(folder / "run.zarr"), folder / "table.csv"
    page, output = tmp_path / "page.html", tmp_path / "found.csv"
    assert main(["report", store, "--output", str(page)]) == 0
    assert "warning: Separation" in capsys.readouterr().out
    assert "Left out" not in page.read_text()
    new = tmp_path / "new.csv"  # predictions need neither weights nor trials
    pandas.read_csv(rows)[["x", "again", "ward"]].to_csv(new, index=False)
    assert main(["predict", store, str(new), "--output", str(output)]) == 0
    assert pandas.read_csv(output)["mean"].between(0.0, 1.0).all()
    other = str(tmp_path / "other.zarr")
    words = ["ill ~ x", "--trials", "persons", "--weights", "times", "--store", other]
    assert main(["fit", str(rows), *words, "--num-samples", "100"]) == 0
    assert main(["compare", store, other]) == 0
    assert "elpd_diff" in capsys.readouterr().out


@pytest.mark.slow
def test_a_fit_of_weights_says_what_one_of_repeated_rows_does():
    """Draws of their own, so within Monte Carlo error; rows that count once are beyond it."""
    long = {"num_samples": 500, "progress": False}
    often = amagold.fit("late ~ x + ward", table(), weights="times", **long)
    each = amagold.fit("late ~ x + ward", repeated(table()), **long)
    once = amagold.fit("late ~ x + ward", table()[table().times > 0], **long)
    ess = min(run.summary()["ess_bulk"].min() for run in (often, each))
    assert ess > 400

    def differ(one, other):
        """In standard errors: log likelihoods of all rows vary by about p from draw to draw."""
        ours, theirs = one.loo(num_draws=2000), other.loo(num_draws=2000)
        yield (ours.elpd - theirs.elpd) / np.sqrt(2.0 * theirs.p / ess)
        ours, theirs = one.effects(num_draws=2000), other.effects(num_draws=2000)
        yield from (ours["mean"] - theirs["mean"]) / (theirs["sd"] * np.sqrt(2.0 / ess))

    assert max(map(abs, differ(often, each))) < threshold(4)
    assert max(map(abs, differ(once, each))) > PLANTED * threshold(4)
    # spreads and shares of the table are those of the repeated rows
    assert np.isclose(often.model.facts.spreads["x"], each.model.facts.spreads["x"])
    assert often.model.facts.columns[:3] == each.model.facts.columns[:3]
