"""What people do with a fitted table next, against NumPy on columns made by hand."""

import copy
import json
import re
import shutil

import numpy as np
import pytest
import xarray
from scipy import stats

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")

import amagold  # noqa: E402
from amagold.cli import main  # noqa: E402
from amagold.core.arviz import arviz_stats  # noqa: E402
from amagold.store._checkpoint import decode, encode  # noqa: E402
from amagold.tables._tail_quantiles import tails  # noqa: E402

NUM_ROWS = 240
FORMULA = "late ~ scale(distance) + C(month, contr.sum) + origin + bs(age, df=4) + distance:origin"
pytestmark = pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")


def table():
    generator = np.random.default_rng(5)
    frame = pandas.DataFrame(
        {
            "distance": generator.normal(500.0, 2.0, NUM_ROWS),
            "month": generator.integers(1, 5, NUM_ROWS),
            "origin": generator.choice(["EWR", "JFK", "LGA"], NUM_ROWS),
            "age": generator.random(NUM_ROWS) + 1.0,
        }
    )
    z = 0.5 * (frame.distance - 500.0) + (frame.origin == "JFK")
    frame["late"] = np.where(generator.random(NUM_ROWS) < 1.0 / (1.0 + np.exp(-z)), "yes", "no")
    frame["delay"] = 3.0 + z + 0.5 * generator.normal(size=NUM_ROWS)
    return frame


SHORT = {"num_samples": 100, "num_warmup": 60, "num_chains": 2, "progress": False}


@pytest.fixture(scope="module")
def logistic(tmp_path_factory):
    return amagold.fit(FORMULA, table(), store=tmp_path_factory.mktemp("a") / "run", **SHORT)


@pytest.fixture(scope="module")
def linear():
    return amagold.fit("delay ~ distance + origin", table(), "linear", **SHORT)


def by_hand(run, frame):
    """z of `delay ~ distance + origin`, with axes (rows, draws)."""
    draws = run.posterior.stack(sample=("chain", "draw"))
    z = draws["Intercept"].values + np.outer(frame.distance, draws["distance"])
    for place, level in enumerate(("JFK", "LGA")):
        z += np.outer(frame.origin == level, draws["origin"].values[place])
    return z, draws["sigma"].values


def test_predictions_are_those_of_dummies(linear):
    frame = table()
    z, sigma = by_hand(linear, frame)
    found = linear.predict(frame, interval=0.8)
    np.testing.assert_allclose(found["mean"], z.mean(axis=1), rtol=1e-6)
    np.testing.assert_allclose(found["lower"], np.quantile(z, 0.1, axis=1), rtol=1e-5)
    new = linear.predict(frame, of="outcome", draws=3)
    assert list(new.columns[3:]) == ["draw_0", "draw_1", "draw_2"]
    wide = (new["upper"] - new["lower"]).mean()
    assert abs(wide / (2 * 1.645 * np.sqrt(z.var(axis=1) + (sigma**2).mean()).mean()) - 1) < 0.1


def test_quantiles_by_counting_are_those_of_sorting():
    draws = np.random.default_rng(0).normal(3.0, 2.0, (300, 1000)).astype(np.float32)
    lower, upper, is_found = tails(draws, draws.mean(axis=1), 0.9)
    wanted = np.quantile(draws, [0.05, 0.95], axis=1)
    assert np.mean(is_found) > 0.9
    for ours, theirs in zip((lower, upper), wanted, strict=True):
        away = (np.asarray(ours) - theirs)[np.asarray(is_found)] / 2.0
        assert np.abs(away).max() < 0.06  # a quantile's own error is 0.067
    # far from a Gaussian they are told not to be found, instead of being wrong
    odd = np.where(draws > 5.0, 1e6, draws)
    lower, upper, is_found = tails(odd, odd.mean(axis=1), 0.9)
    exact = np.quantile(odd, [0.05, 0.95], axis=1)
    wrong = np.abs(np.asarray(lower) - exact[0]) > 1.0
    assert not (wrong & np.asarray(is_found)).any()


def test_a_loaded_run_predicts_to_the_bit_the_same(logistic):
    loaded, new = amagold.load(logistic.path), table().drop(columns="late").iloc[:50]
    ours, theirs = logistic.predict(new), loaded.predict(new)
    pandas.testing.assert_frame_equal(ours, theirs, check_exact=True)
    assert list(ours.columns) == ["mean[yes]", "lower[yes]", "upper[yes]"]
    # one row has the numbers that it has among others
    alone = loaded.predict(new.iloc[7:8])
    np.testing.assert_allclose(alone, ours.iloc[7:8], rtol=1e-3)
    assert loaded.model.facts == logistic.model.facts


BROKEN = {
    "level": (lambda frame: frame.assign(origin="XYZ"), "row 0 .* has 'XYZ'; known are 'EWR'"),
    "column": (lambda frame: frame.drop(columns="age"), "'age' is none"),
    "missing": (lambda frame: frame.assign(age=np.nan), "'age' misses one in row 0"),
    "kind": (lambda frame: frame.assign(age="old"), "numbers in 'age'"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_new_rows_that_cannot_be_are_said(name, logistic):
    change, words = BROKEN[name]
    with pytest.raises(ValueError, match=words):
        logistic.predict(change(table()))


def test_a_run_without_a_table_says_so():
    run = amagold.Run({"posterior": DRAWS}, {}, None, [], None)
    with pytest.raises(ValueError, match="predict needs a run of amagold"):
        run.predict(table())


def test_effects_are_numeric_derivatives_and_differences(linear, logistic):
    found = linear.effects().set_index(["term", "level"])["mean"]
    draws = linear.posterior
    assert np.isclose(found["distance"].iloc[0], float(draws["distance"].mean()), rtol=1e-5)
    assert np.isclose(found["origin", "LGA"], float(draws["origin"][..., 1].mean()), rtol=1e-4)
    frame, step = table(), 1e-2
    up, down = (logistic.predict(frame.assign(distance=frame.distance + d)) for d in (step, -step))
    wanted = float((up["mean[yes]"] - down["mean[yes]"]).mean() / (2 * step))
    of_distance = logistic.effects().set_index("term").loc["distance", "mean"]
    assert np.isclose(of_distance, wanted, rtol=2e-2)
    link = linear.contrast("distance", 500.0, 502.0).set_index("scale").loc["link", "mean"]
    assert np.isclose(link, 2.0 * float(draws["distance"].mean()), rtol=1e-5)


def test_loo_is_that_of_all_log_likelihoods(linear):
    frame = table()
    z, sigma = by_hand(linear, frame)
    logs = stats.norm.logpdf(frame.delay.to_numpy()[:, None], z, sigma)
    by_chain = logs.T.reshape(2, 100, NUM_ROWS)
    tree = {
        "posterior": linear.posterior,
        "log_likelihood": xarray.Dataset({"y": (("chain", "draw", "row"), by_chain)}),
    }
    whole = arviz_stats().loo(xarray.DataTree.from_dict(tree))
    assert np.isclose(linear.loo().elpd, whole.elpd, atol=0.02)
    some = linear.loo(num_rows=80)
    assert some.subsample_size == 80
    assert abs(some.elpd - whole.elpd) < 5 * some.subsampling_se + 0.02


@pytest.mark.slow
def test_the_better_formula_is_first(linear, logistic):
    worse = copy.copy(linear)
    shifted = linear.posterior.assign(Intercept=linear.posterior["Intercept"] + 1.0)
    worse._groups = {**linear._groups, "posterior": shifted}
    found = amagold.compare([worse, linear], ["worse", "better"], num_rows=100)
    assert list(found.index) == ["better", "worse"]
    assert found.loc["worse", "elpd_diff"] > 50
    by_name = amagold.compare({"worse": worse, "better": linear}, num_rows=100)
    assert by_name.equals(found)
    with pytest.raises(ValueError, match="names must not be given with runs that are a dict"):
        amagold.compare({"worse": worse, "better": linear}, ["a", "b"])
    with pytest.raises(ValueError, match=r"amagold\.fit, got 'run\.zarr'"):
        amagold.compare([linear, "run.zarr"])
    with pytest.raises(ValueError, match="the same rows and outcomes"):
        amagold.compare([linear, logistic])


def test_a_predictive_check_sees_a_wrong_noise(linear):
    check = linear.predictive_check()
    assert check.calibration["count"].sum() == NUM_ROWS
    inside = check.calibration["observed"].between(*(check.calibration[c] for c in LIMITS))
    assert inside.mean() > 0.5
    assert (check.statistics["share_above"].between(0.001, 0.999)).all()
    # outcomes three times as far from their mean are seen
    frame = table()
    frame["delay"] = frame.delay.mean() + 3.0 * (frame.delay - frame.delay.mean())
    wrong = linear.predictive_check(table=frame).statistics.set_index("statistic")
    assert wrong.loc["standard deviation", "share_above"] == 0.0


LIMITS = ("lower", "upper")
DRAWS = xarray.Dataset({"x": (("chain", "draw"), np.zeros((2, 3)))})
HOSTILE = {
    "formula": "late ~ I(__import__('os').getpid())",
    "family": "weibull",
    "names": ["x"],
    "terms": [["Intercept", None, [10**9]]],
    "encoders": [["origin", "categorical", 3, True]],
    "transforms": ["dict", [["evil(x)", 1]]],
    "example": ["dict", []],
    "law": {"model": "linear", "shape": {}},
    "version": 2,
}


@pytest.mark.parametrize("field", HOSTILE)
def test_a_strangers_model_is_refused_in_a_sentence(field, logistic, tmp_path):
    place = shutil.copytree(logistic.path, tmp_path / "run")
    file = place / ".amagold" / "table"
    kept = decode(file.read_bytes())
    notes = json.loads(json.dumps(kept.notes)) | {field: HOSTILE[field]}
    file.write_bytes(encode(kept._replace(notes=notes)))
    with pytest.raises(ValueError, match="path must hold the model of the run's table"):
        amagold.load(place).predict(table())


def test_the_commands_predict_and_compare(logistic, tmp_path, capsys):
    new = tmp_path / "new.csv"
    table().drop(columns="late").to_csv(new, index=False)
    output = tmp_path / "found.parquet"
    run = str(logistic.path)
    assert main(["predict", run, str(new), "--output", str(output)]) == 0
    assert len(pandas.read_parquet(output)) == NUM_ROWS
    assert main(["predict", run, str(new), "--output", str(tmp_path / "found.txt")]) == 2
    assert main(["compare", run]) == 2
    assert sorted(path.name for path in tmp_path.iterdir()) == ["found.parquet", "new.csv"]
    said = capsys.readouterr().err
    assert said.count("\n") == 2


@pytest.mark.parametrize("name", BROKEN)
def test_the_command_says_what_new_rows_cannot_be(name, logistic, tmp_path, capsys):
    change, words = BROKEN[name]
    new = tmp_path / "new.csv"
    change(table()).to_csv(new, index=False)
    arguments = ["predict", str(logistic.path), str(new), "--output", str(tmp_path / "found.csv")]
    assert main(arguments) == 2
    said = capsys.readouterr()
    assert re.search(words, said.err)
    assert said.err.count("\n") == 1
    assert [path.name for path in tmp_path.iterdir()] == ["new.csv"]


@pytest.mark.slow
def test_a_stopped_fit_goes_on_without_its_table(tmp_path, capsys):
    settings = {"num_samples": 30, "num_warmup": 40, "num_chains": 2, "progress": False}
    whole = amagold.fit("late ~ distance", table(), **settings)
    store = tmp_path / "run"
    amagold.fit("late ~ distance", table(), **settings, store=store, max_time=1e-3)
    assert amagold.load(store).is_partial
    assert main(["resume", str(store)]) == 0
    found = amagold.load(store)
    assert "another target" not in capsys.readouterr().out
    np.testing.assert_array_equal(found.posterior["distance"], whole.posterior["distance"])
    (store / ".amagold" / "rows").unlink()
    assert main(["resume", str(store)]) == 2
    assert "--table TABLE" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.parametrize("family", ["poisson", "negative_binomial"])
def test_exposures_of_new_rows_count(family, tmp_path):
    generator = np.random.default_rng(9)
    frame = table().assign(hours=generator.random(NUM_ROWS) + 0.5)
    frame["events"] = generator.poisson(3.0 * frame.hours)
    store = tmp_path / "run"
    amagold.fit("events ~ origin", frame, family, exposure="hours", store=store, **SHORT)
    run = amagold.load(store)
    once, twice = (run.predict(frame.assign(hours=hours)) for hours in (1.0, 2.0))
    np.testing.assert_allclose(twice, 2.0 * once, rtol=1e-4)
    assert len(run.effects()) == 2
    assert np.isfinite(run.loo().elpd)
    with pytest.raises(ValueError, match="'hours' is none"):
        run.predict(frame.drop(columns="hours"))


@pytest.mark.slow
@pytest.mark.parametrize("family", ["softmax", "ordinal"])
def test_several_classes_have_names(family, tmp_path):
    frame = table()
    frame["grade"] = pandas.cut(frame.delay, 3, labels=["low", "middle", "high"])
    store = tmp_path / "run"
    fitted = amagold.fit("grade ~ distance + origin", frame, family, store=store, **SHORT)
    run = amagold.load(store)
    found = run.predict(frame)
    pandas.testing.assert_frame_equal(found, fitted.predict(frame), check_exact=True)
    means = found[[f"mean[{label}]" for label in ("low", "middle", "high")]].to_numpy()
    np.testing.assert_allclose(means.sum(axis=1), 1.0, rtol=1e-5)
    draws = fitted.posterior.stack(sample=("chain", "draw"))
    x = frame.distance.to_numpy()[:, None]
    if family == "ordinal":
        z = x * draws["distance"].values
        for place, level in enumerate(("JFK", "LGA")):
            z = z + np.outer(frame.origin == level, draws["origin"].values[place])
        lowest = 1.0 / (1.0 + np.exp(z - draws["threshold"].values[0]))
    else:
        z = draws["Intercept"].values + x[..., None] * draws["distance"].values
        for place, level in enumerate(("JFK", "LGA")):
            of_level = draws["origin"].isel(origin_dim=place).values
            z = z + (frame.origin == level).to_numpy()[:, None, None] * of_level
        weights = np.exp(z - z.max(axis=1, keepdims=True))
        lowest = weights[:, 0] / weights.sum(axis=1)
    np.testing.assert_allclose(means[:, 0], lowest.mean(axis=1), atol=1e-4)
    effects = run.effects()
    assert len(effects) == 9
    per_change = effects.groupby(["term", "level"], dropna=False, sort=False)["mean"].sum()
    np.testing.assert_allclose(per_change, 0.0, atol=1e-5)
    assert np.isfinite(run.loo().elpd)
    check = run.predictive_check()
    assert check.calibration["count"].sum() == 3 * NUM_ROWS
    assert check.statistics["statistic"].iloc[0] == "share of 'low'"
