"""What follows from draws of random effects: predictions, variances, a stored model, a page."""

import html
import json
import math
import re

import numpy as np
import pytest
from browser import look_at
from false_alarms import PLANTED, threshold
from invented_draws import invented_draws
from scipy.special import expit

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")
pytest.importorskip("jinja2")

from invented_run import whole_run  # noqa: E402
from test_grouped_tables import table  # noqa: E402

from amagold.report._caterpillar_chart import caterpillar_chart  # noqa: E402
from amagold.report._run_page import report_text  # noqa: E402
from amagold.store._checkpoint import Checkpoint, decode, encode  # noqa: E402
from amagold.store._root import PRIVATE  # noqa: E402
from amagold.tables._group_draws import group_draws, strangers_only  # noqa: E402
from amagold.tables._read_table import read_table  # noqa: E402
from amagold.tables._stored_model import files_of, load_model  # noqa: E402

FORMULA = "late ~ distance + (1 + distance | origin) + (1 | carrier)"
HOSTILE = "<script>alert(1)</script>"


def frame():
    return table().assign(distance=table().distance / 1000.0)


def run_of(formula=FORMULA, family="logistic", given=None, **options):
    return invented_draws(formula, frame() if given is None else given, family, **options)


def flat(run, name):
    values = run.posterior[name].to_numpy()
    return values.reshape(-1, *values.shape[2:])


def z_of(run, rows, *, with_groups=True):
    """By hand, with axes (rows, draws)."""
    x = rows.distance.to_numpy()[:, None]
    z = flat(run, "Intercept") + flat(run, "distance") * x
    if with_groups:
        levels = {term.group: list(term.levels) for term in run.model.terms.groups}
        origin = [levels["origin"].index(name) for name in rows.origin]
        carrier = [levels["carrier"].index(f"{each:.0f}") for each in rows.carrier]
        z = z + flat(run, "1|origin")[:, origin].T + flat(run, "distance|origin")[:, origin].T * x
        z = z + flat(run, "1|carrier")[:, carrier].T
    return z


@pytest.mark.parametrize("groups", ["own", "none"])
def test_predictions_are_those_of_the_formula(groups):
    run, rows = run_of(), frame().iloc[:40]
    given = rows if groups == "own" else rows[["distance"]]
    found = run.predict(given, groups=groups, draws=200)
    mean = expit(z_of(run, rows, with_groups=groups == "own"))
    np.testing.assert_allclose(found["mean"], mean.mean(axis=1), atol=1e-5)
    np.testing.assert_allclose(found[[f"draw_{at}" for at in range(200)]], mean, atol=1e-5)
    ends = np.quantile(mean, [0.05, 0.95], axis=1).T
    np.testing.assert_allclose(found[["lower", "upper"]], ends, atol=0.01)


@pytest.mark.parametrize("chunk", [2**14, 16])
def test_a_new_level_is_the_same_in_all_parts_of_a_table(chunk, monkeypatch):
    from amagold.tables import _predict

    run, rows = run_of(), frame().assign(origin="XYZ", distance=1.0, carrier=3.0)
    monkeypatch.setattr(_predict, "CHUNK_ROWS", chunk)
    found = run.predict(rows, draws=5)
    assert (found.nunique() == 1).all()
    assert not np.allclose(found, run.predict(rows.assign(origin="ABC"), draws=5))
    assert not np.allclose(found, run.predict(rows, draws=5, seed=1))


def drawn(num_levels=400, break_it=lambda noise: noise):
    """Effects of levels that nobody has seen, in units of what their distribution says: squares of
    both, and their product.
    """
    run = run_of()
    rows = frame().iloc[:1].sample(num_levels, replace=True, random_state=0)
    rows = rows.assign(origin=[f"new{place}" for place in range(num_levels)])
    term = run.model.terms.groups[0]
    values = group_draws(term, lambda name, _: flat(run, name).reshape(200, -1), 0)
    values = values._replace(factor=break_it(values.factor))
    intercept, slope = values.of(run.model.terms.group_rows(read_table(rows))[0]).effects
    sigmas = [flat(run, name) for name in term.scales]
    (correlation,) = (flat(run, name) for name in term.correlations)
    first, second = intercept / sigmas[0], slope / sigmas[1]
    found = np.stack([first**2, second**2, first * second, first, second])
    wanted = np.stack([np.ones(200), np.ones(200), correlation, np.zeros(200), np.zeros(200)])
    # levels are independent of each other, draws of one level likewise
    away = (found - wanted[:, None]).reshape(5, -1)
    return np.abs(away.mean(axis=1) / (away.std(axis=1) / math.sqrt(away.shape[1]))).max()


def test_new_levels_have_the_distribution_of_the_levels():
    assert drawn() < threshold(5)


@pytest.mark.parametrize(
    "break_it",
    [
        lambda factor: factor**2,
        lambda factor: factor * np.eye(2),
        lambda factor: factor.transpose(0, 2, 1),
    ],
    ids=["variances for sds", "no correlation", "transposed"],
)
def test_wrong_distributions_of_new_levels_are_noticed(break_it):
    assert drawn(break_it=break_it) > PLANTED * threshold(5)


def test_new_groups_are_wider_than_known_ones_and_have_another_mean_than_none():
    run, rows = run_of(scale=1.5), frame().iloc[:20]
    own, new, none = (run.predict(rows, groups=groups) for groups in ("own", "new", "none"))
    widths = [float((each["upper"] - each["lower"]).mean()) for each in (own, new, none)]
    assert widths[1] > 3.0 * max(widths[0], widths[2])
    strange = rows.assign(origin="?", carrier=99.0)
    np.testing.assert_allclose(run.predict(strange, groups="none"), none)
    assert np.abs(run.predict(strange) - new)["mean"].max() < 0.2


def test_levels_can_be_taken_for_strangers():
    run = run_of()
    term = run.model.terms.groups[0]
    rows = run.model.terms.group_rows(read_table(frame()))[0]
    found = strangers_only(rows, term)
    names = [found.strangers[code - term.num_levels] for code in found.codes]
    assert names == frame().origin.tolist()


def test_wrong_wishes_are_said():
    run = run_of()
    with pytest.raises(ValueError, match="groups must be 'own', 'new' or 'none', got 'all'"):
        run.predict(frame(), groups="all")
    with pytest.raises(ValueError, match="group must name one of the formula's groups, 'origin', "):
        run.group_effects("size")
    with pytest.raises(ValueError, match="got None"):
        run.group_effects()
    with pytest.raises(ValueError, match="effect must be one that varies by the group, '1', "):
        run.plot_groups("origin", effect="speed")
    plain = run_of("late ~ distance")
    with pytest.raises(ValueError, match="must be of a formula with random effects"):
        plain.variance_partition()
    with pytest.raises(ValueError, match="groups must be 'own' for a formula without any"):
        plain.predict(frame(), groups="new")


def test_effects_of_levels_are_a_table():
    run = run_of()
    found = run.group_effects("origin", interval=0.8)
    assert list(found.columns) == [
        *("effect", "level", "mean", "sd", "lower", "upper", "rows", "shrinkage"),
    ]
    assert found["effect"].tolist() == ["1"] * 4 + ["distance"] * 4
    assert found["level"].tolist() == ["EWR", "JFK", "LGA", "a:b"] * 2
    draws = flat(run, "distance|origin")
    np.testing.assert_allclose(found["mean"][4:], draws.mean(axis=0))
    np.testing.assert_allclose(found["lower"][4:], np.quantile(draws, 0.1, axis=0))
    spread = (flat(run, "distance|origin_sigma") ** 2).mean()
    np.testing.assert_allclose(found["shrinkage"][4:], draws.var(axis=0) / spread)
    counts = frame().origin.value_counts()
    assert found["rows"].tolist() == counts[["EWR", "JFK", "LGA", "a:b"]].tolist() * 2
    assert len(run.group_effects("carrier")) == 8
    figure = run.plot_groups("origin", effect="distance")
    assert len(figure.axes) == 2


RESIDUALS = {
    "logistic": ("late", lambda run: math.pi**2 / 3.0, {}),
    "probit": ("late", lambda run: 1.0, {}),
    "poisson": ("count", lambda run: math.log1p(1.0 / frame()["count"].mean()), {}),
    "negative_binomial": (
        "count",
        lambda run: math.log1p(1.0 / frame()["count"].mean() + 1.0 / 2.5),
        {"dispersion": 2.5},
    ),
    "linear": ("delay", lambda run: flat(run, "sigma") ** 2, {}),
}


@pytest.mark.parametrize("family", RESIDUALS)
def test_the_variance_is_parted(family):
    outcome, residual, options = RESIDUALS[family]
    run = run_of(f"{outcome} ~ distance + (distance | origin) + (1 | carrier)", family, **options)
    found = run.variance_partition()
    assert found["source"].tolist() == ["origin", "carrier", "residual"]
    assert found["share"].sum() == pytest.approx(1.0)
    x = frame().distance.to_numpy()
    ones, slopes = flat(run, "1|origin_sigma"), flat(run, "distance|origin_sigma")
    both = flat(run, "1, distance|origin_correlation") * ones * slopes
    of_origin = ones**2 + 2.0 * x.mean() * both + (x**2).mean() * slopes**2
    of_carrier = flat(run, "1|carrier_sigma") ** 2
    total = of_origin + of_carrier + residual(run)
    np.testing.assert_allclose(found["variance"][:2], [of_origin.mean(), of_carrier.mean()])
    np.testing.assert_allclose(found["share"][1], (of_carrier / total).mean())
    np.testing.assert_allclose(found["upper"][0], np.quantile(of_origin / total, 0.95))
    assert found.attrs["residual"]


def test_effects_and_contrasts_see_what_varies():
    run = run_of()
    rows = frame()
    assert run.effects(table=rows)["term"].tolist() == ["distance"]
    mean = expit(z_of(run, rows))
    slopes = flat(run, "distance") + 0.0 * mean
    origin = [["EWR", "JFK", "LGA", "a:b"].index(name) for name in rows.origin]
    slopes = slopes + flat(run, "distance|origin")[:, origin].T
    wanted = (mean * (1.0 - mean) * slopes).mean(axis=0)
    assert run.effects(table=rows)["mean"][0] == pytest.approx(wanted.mean(), rel=1e-3)
    found = run.contrast("origin", "JFK", "LGA", table=rows)
    ends = [expit(z_of(run, rows.assign(origin=name))) for name in ("JFK", "LGA")]
    np.testing.assert_allclose(found["mean"][1], (ends[1] - ends[0]).mean(), rtol=1e-4)
    with pytest.raises(ValueError, match="levels of 'origin' that were fitted, got 'JKF'"):
        run.contrast("origin", "JFK", "JKF", table=rows)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_rows_that_are_left_out_are_those_of_their_levels():
    run = run_of()
    found = run.loo(num_rows=300, table=frame())
    mean = expit(z_of(run, frame()))
    late = frame().late.to_numpy()[:, None]
    logs = np.log(np.where(late, mean, 1.0 - mean))
    # what is expected of a row that was seen is above what is of one left out
    inside = np.log(np.exp(logs).mean(axis=1)).sum()
    assert found.elpd < inside < found.elpd + 3.0 * found.p
    check = run.predictive_check(table=frame())
    assert check.calibration["count"].sum() == len(frame())


def stored(run, folder):
    (folder / PRIVATE).mkdir(parents=True)
    for name, content in files_of(run.model).items():
        (folder / PRIVATE / name).write_bytes(content)


@pytest.mark.parametrize(
    "formula",
    [
        FORMULA,
        "late ~ C(month) + (scale(distance) + C(month) | day/size) + (1 | flag)",
        "late ~ (1 | origin:carrier)",
    ],
)
def test_a_stored_model_predicts_the_same(formula, tmp_path):
    run = run_of(formula)
    stored(run, tmp_path)
    rows = frame().iloc[:50].assign(origin="XYZ")
    wanted = run.predict(rows), run.variance_partition(), run.predict(frame())
    run.model = load_model(tmp_path)
    pandas.testing.assert_frame_equal(run.predict(rows), wanted[0])
    pandas.testing.assert_frame_equal(run.variance_partition(), wanted[1])
    pandas.testing.assert_frame_equal(run.predict(frame()), wanted[2])
    assert run.model.known_target().num_examples == len(frame())


DAMAGES = {
    "no groups": lambda group: None,
    "places": lambda group: {**group, "places": [[9]] * 4},
    "order": lambda group: {**group, "places": group["places"][::-1]},
    "columns": lambda group: {**group, "values": []},
    "texts": lambda group: {**group, "effects": [1, 2]},
    "others": lambda group: {**group, "effects": ["1", "speed"]},
    "rows": lambda group: {**group, "num_rows": [1]},
    "moments": lambda group: {**group, "moments": ["array", [1.0], [1, 1]]},
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_model_is_one_line(name, tmp_path):
    stored(run_of(), tmp_path)
    file = tmp_path / PRIVATE / "table"
    kept = decode(file.read_bytes())
    notes = json.loads(json.dumps(kept.notes))
    damaged = DAMAGES[name](notes["groups"][0])
    notes["groups"] = [] if damaged is None else [damaged, *notes["groups"][1:]]
    file.write_bytes(encode(Checkpoint("table", 0, {}, notes)))
    with pytest.raises(ValueError, match="is damaged") as raised:
        load_model(tmp_path)
    assert "\n" not in str(raised.value)


def text_of(page):
    body = re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)
    return html.unescape(" ".join(re.sub(r"<[^>]+>", " ", body).split()))


def page(num_levels=4, formula=FORMULA):
    generator = np.random.default_rng(0)
    rows = frame()
    if num_levels > 4:
        names = [HOSTILE, *(f"level {place}" for place in range(1, num_levels))]
        places = np.concatenate([np.arange(num_levels), generator.integers(0, num_levels, 300)])
        rows = rows.sample(len(places), replace=True, random_state=1, ignore_index=True)
        rows = rows.assign(origin=np.array(names, object)[places])
    return report_text(whole_run(run_of(formula, given=rows)))


def test_the_page_tells_of_groups():
    told = text_of(page())
    assert "How late goes with distance, by origin and carrier" in told
    assert "and vary by origin and carrier?" in told
    assert "4 levels of origin differ by a standard deviation of" in told
    assert "The coefficient of distance varies by origin with a standard deviation of" in told
    assert "Where the intercept is higher, the coefficient of distance tends to be higher" in told
    assert "lies between levels of carrier: the intraclass correlation" in told
    assert "Each level of origin and carrier adds an effect of its own" in told
    assert "1 of 1 coefficients" in told or "0 of 1 coefficients" in told
    assert "Left out" not in told


def test_nested_rows_share_what_either_group_adds():
    run = run_of("late ~ distance + (1 | origin/carrier)")
    found = run.variance_partition().set_index("source")
    outer, inner = found.loc["origin"], found.loc["origin:carrier"]
    assert outer.intraclass == outer.share
    np.testing.assert_allclose(inner.intraclass, outer.share + inner.share)
    assert math.isnan(found.loc["residual"].intraclass)
    told = text_of(page(formula="late ~ distance + (1 | origin/carrier)"))
    assert "lies between levels of origin: the intraclass correlation" in told
    assert "With that of origin, which it lies within, the intraclass correlation of rows" in told


@pytest.mark.slow
def test_a_page_of_many_levels_stays_small_and_says_how_many_are_clear():
    found = page(3_000, "late ~ distance + (1 | origin)")
    told = text_of(found)
    assert "3,000 levels of origin differ" in told
    assert "The largest and the smallest levels of origin" in told
    assert re.search(r"[\d,]+ of 3,000 levels have a 90% interval that leaves out", told)
    assert "2,600 between them are in run.group_effects()" in told
    assert HOSTILE not in found
    assert len(found) < 500_000


@pytest.mark.slow
@pytest.mark.parametrize("width", [1200, 390])
def test_names_of_levels_do_nothing_in_a_browser(width, tmp_path):
    (tmp_path / "page.html").write_text(page(40))
    seen = look_at(tmp_path / "page.html", width)
    assert seen.complaints == []
    assert seen.num_scripts == 0
    assert seen.overflow == 0
    assert HOSTILE in seen.text


@pytest.mark.parametrize("num_levels", [1, 2, 150, 151, 10_000])
def test_a_caterpillar_holds_all_levels_in_order(num_levels):
    generator = np.random.default_rng(0)
    mean = generator.normal(size=num_levels)
    found = caterpillar_chart(mean, mean - 0.5, mean + 0.5, ratio=False)
    assert found.num_above == (mean > 0.5).sum()
    assert found.num_below == (mean < -0.5).sum()
    if num_levels <= 150:
        assert [bar.mean for bar in found.bars] == sorted(bar.mean for bar in found.bars)[::-1]
        assert found.each == 0
    else:
        heights = [float(point.split(",")[1]) for point in found.line.split()]
        assert heights == sorted(heights, reverse=True)
        assert len(heights) == 150
        assert found.each * 150 >= num_levels
    unknown = np.full(num_levels, np.nan)
    assert caterpillar_chart(unknown, mean, mean, ratio=True) is None
