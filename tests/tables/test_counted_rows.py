"""Rows that count several times, and rows of trials, against a table with a row for each."""

import dataclasses

import numpy as np
import pytest
import xarray
from false_alarms import PLANTED, threshold, worst
from invented_draws import CHAINS, DRAWS, invented_draws
from scipy import stats

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
nw = pytest.importorskip("narwhals")

import amagold  # noqa: E402
from amagold.core.arviz import arviz_stats  # noqa: E402
from amagold.models import _merged_rows as merging  # noqa: E402
from amagold.tables import _effects, _fit, _loo, _predictive_check  # noqa: E402
from amagold.tables._difference_estimate import RowSample, row_sum  # noqa: E402
from amagold.tables._drawn_rows import chances, some_rows  # noqa: E402
from amagold.tables._observed_rows import ObservedRows, observed_rows  # noqa: E402

NUM_ROWS = 80
OUTCOMES = {
    "logistic": "late",
    "probit": "late",
    "poisson": "visits",
    "negative_binomial": "visits",
    "gamma": "cost",
    "linear": "cost",
    "robust": "cost",
    "softmax": "grade",
    "ordinal": "grade",
}
pytestmark = [
    pytest.mark.filterwarnings("ignore::amagold.SamplingWarning"),
    pytest.mark.filterwarnings("ignore:Estimated shape parameter"),  # arviz-stats' own
    pytest.mark.filterwarnings("ignore:The inplace keyword"),
]


def table():
    """Rows whose weights and trials go with what they say, so that leaving them out would show."""
    generator = np.random.default_rng(3)
    x = generator.normal(size=NUM_ROWS)
    late = (generator.random(NUM_ROWS) < 1.0 / (1.0 + np.exp(-x))).astype(int)
    persons = generator.integers(1, 9, NUM_ROWS)
    return pandas.DataFrame(
        {
            "x": x,
            "ward": generator.choice(["a", "b", "c"], NUM_ROWS),
            "late": late,
            "visits": generator.poisson(np.exp(0.3 * x)),
            "cost": np.exp(0.5 * x + 0.3 * generator.normal(size=NUM_ROWS)),
            "grade": pandas.cut(x, 3, labels=["low", "middle", "high"]).astype(str),
            "times": generator.integers(0, 3, NUM_ROWS) + 3 * (x > 0.5),
            "persons": persons,
            "ill": generator.binomial(persons, 1.0 / (1.0 + np.exp(-x))),
        }
    )


def repeated(frame):
    return frame.loc[frame.index.repeat(frame.times)].reset_index(drop=True)


def by_trial(frame):
    """A row of 0 or 1 for each trial."""
    each = frame.loc[frame.index.repeat(frame.persons)].reset_index()
    place = each.groupby("index").cumcount()
    return each.assign(ill=(place < each.ill).astype(int)).drop(columns="index")


def next_steps(run, **how):
    """All that is said of a table, as arrays."""
    loo, check = run.loo(**how), run.predictive_check()
    effects = run.effects()
    contrast = run.contrast("x", -1.0, 1.0)
    numbers = ["mean", "sd", "lower", "upper"]
    return {
        "effects": effects[numbers].to_numpy(),
        "contrast": contrast[numbers].to_numpy(),
        "elpd": np.array([loo.elpd, loo.p, loo.se]),
        "number": np.array(loo.n_data_points),
        "calibration": check.calibration.to_numpy(float),
        "statistics": check.statistics.drop(columns="statistic").to_numpy(float),
    }


def agree(ours, theirs, parts=None, rtol=2e-4, atol=2e-5):
    parts = ours if parts is None else parts
    assert parts
    return {
        part
        for part in parts
        if ours[part].shape == theirs[part].shape
        and np.allclose(ours[part], theirs[part], rtol=rtol, atol=atol)
    }


@pytest.mark.parametrize(
    "family",
    [pytest.param(each, marks=[] if each == "logistic" else pytest.mark.slow) for each in OUTCOMES],
)
def test_weights_are_repeated_rows(family, monkeypatch):
    formula = f"{OUTCOMES[family]} ~ x * ward"
    ours = invented_draws(formula, table(), family, weights="times")
    theirs = invented_draws(formula, repeated(table()), family)
    wanted = next_steps(theirs)
    assert agree(next_steps(ours), wanted) == set(wanted)

    # all of it would see weights that are forgotten
    def forgetful(model, given, are_few=False):
        rows = observed_rows(model, given, are_few)
        return ObservedRows(rows.frame, rows.outcomes, rows.model)

    for module in (_effects, _loo, _predictive_check):
        monkeypatch.setattr(module, "observed_rows", forgetful)
    assert agree(next_steps(ours), wanted) == set()


@pytest.mark.slow
@pytest.mark.parametrize("family", ["logistic", pytest.param("probit", marks=pytest.mark.slow)])
def test_trials_are_rows_of_zeros_and_ones(family):
    ours = invented_draws("ill ~ x + ward", table(), family, trials="persons")
    theirs = invented_draws("ill ~ x + ward", by_trial(table()), family)
    found, wanted = next_steps(ours, leave_out="trial"), next_steps(theirs)
    same = {"effects", "contrast", "elpd", "number"}
    assert agree(found, wanted, same) == same
    # predicted, observed and count of every bin; replications have other random numbers
    columns = [0, 1, 4]
    np.testing.assert_allclose(
        found["calibration"][:, columns], wanted["calibration"][:, columns], rtol=1e-5
    )
    (observed, mean, lower, upper, _), others = found["statistics"][0], wanted["statistics"][0]
    assert np.isclose(observed, others[0])
    error = (upper - lower) / 3.29 * np.sqrt(2.0 / (CHAINS * DRAWS))
    assert abs(mean - others[1]) < threshold() * error
    width = np.sqrt(np.mean((found["calibration"][:, 3] - found["calibration"][:, 2]) ** 2))
    width /= np.sqrt(np.mean((wanted["calibration"][:, 3] - wanted["calibration"][:, 2]) ** 2))
    assert 0.8 < width < 1.25  # one draw in place of all trials of a row would be 2
    # a row is left out with all of its trials unless it is said otherwise
    assert ours.loo().n_data_points == NUM_ROWS
    with pytest.raises(ValueError, match="leave_out must be 'row' for a run without trials"):
        theirs.loo(leave_out="trial")
    with pytest.raises(ValueError, match="leave_out must be 'row' or 'trial'"):
        ours.loo(leave_out="ward")


def test_a_row_of_trials_is_left_out_whole():
    frame = table()
    run = invented_draws("ill ~ x", frame, "logistic", trials="persons")
    draws = run.posterior.stack(sample=("chain", "draw"))
    z = draws["Intercept"].values + np.outer(frame.x, draws["x"])
    logs = stats.binom.logpmf(
        frame.ill.to_numpy()[:, None], frame.persons.to_numpy()[:, None], 1 / (1 + np.exp(-z))
    )
    by_chain = logs.T.reshape(CHAINS, DRAWS, NUM_ROWS)
    tree = {
        "posterior": run.posterior,
        "log_likelihood": xarray.Dataset({"y": (("chain", "draw", "row"), by_chain)}),
    }
    whole, found = arviz_stats().loo(xarray.DataTree.from_dict(tree)), run.loo()
    assert np.allclose([found.elpd, found.p, found.se], [whole.elpd, whole.p, whole.se], rtol=1e-4)


@pytest.mark.parametrize(
    "options", [pytest.param({}, marks=pytest.mark.slow), {"weights": "times"}]
)
def test_rows_that_amagold_merged_are_left_out_one_by_one(options, monkeypatch):
    frame = table()
    frame["x"] = np.round(frame.x)
    frame = pandas.concat([frame] * 4, ignore_index=True)
    merged = invented_draws("late ~ x", frame, "logistic", **options)
    monkeypatch.setattr(
        _fit, "merged_rows", lambda *given: merging.MergedRows(*given[:3], len(given[0]))
    )
    whole = invented_draws("late ~ x", frame, "logistic", **options)
    assert merged.model.target.num_examples < 0.2 * whole.model.target.num_examples
    found, wanted = next_steps(merged), next_steps(whole)
    for part, values in wanted.items():
        np.testing.assert_array_equal(found[part], values)


def test_comparisons_count_rows_as_often_as_they_stand_for():
    def compared(frame, **options):
        runs = [
            invented_draws(f"late ~ {right}", frame, "logistic", **options) for right in ("x", "1")
        ]
        return amagold.compare(runs, ["with", "without"]).drop(columns="warning")

    ours, theirs = compared(table(), weights="times"), compared(repeated(table()))
    pandas.testing.assert_frame_equal(ours, theirs, rtol=1e-4)
    assert not np.allclose(ours["dse"].iloc[1], compared(table())["dse"].iloc[1], rtol=1e-2)
    # as arviz-stats has it
    runs = [invented_draws(f"late ~ {right}", table(), "logistic") for right in ("x", "1")]
    wanted = arviz_stats().compare(
        dict(zip(("with", "without"), (run.loo() for run in runs), strict=True)),
        method="pseudo-BMA",
    )
    found = amagold.compare(runs, ["with", "without"])
    assert list(found.columns) == list(wanted.columns)
    pandas.testing.assert_frame_equal(found, wanted, check_dtype=False)


def test_runs_of_other_weights_are_not_compared():
    once = invented_draws("late ~ x", table()[table().times > 0], "logistic")
    often = invented_draws("late ~ x", table(), "logistic", weights="times")
    with pytest.raises(ValueError, match="the same weights"):
        amagold.compare([once, often])
    frame = table()
    of_ten = invented_draws("ill ~ x", frame.assign(persons=10), "logistic", trials="persons")
    some = invented_draws("ill ~ x", frame, "logistic", trials="persons")
    with pytest.raises(ValueError, match="the same trials"):
        amagold.compare([of_ten, some])


def test_some_rows_stand_for_all():
    """Over many seeds, averages over rows that were drawn are those over all; drawn without their
    weights, or counted without them, they are not.
    """
    generator = np.random.default_rng(0)
    counts = np.exp(1.5 * generator.normal(size=300))
    values = np.log(counts) + generator.normal(size=300)
    wanted = np.average(values, weights=counts)

    def average(seed, is_drawn_by_weight=True, is_expanded=True):
        alike = counts if is_drawn_by_weight else np.ones(300)
        chosen, likely = some_rows(alike, 60, np.random.default_rng(seed))
        each = counts[chosen] / (likely if is_expanded else 1.0)
        return float(each @ values[chosen]) / counts.sum(), float(each.sum())

    found = np.array([average(seed) for seed in range(400)])
    np.testing.assert_allclose(found[:, 1], counts.sum())  # as many as there are, every time
    assert worst(found[:, 0], wanted) < 1.0
    biased = np.array([average(seed, is_expanded=False)[0] for seed in range(400)])
    assert worst(biased, wanted) > PLANTED
    # and more of what counts is drawn, so that less is left to chance
    alike = np.array([average(seed, is_drawn_by_weight=False)[0] for seed in range(400)])
    assert found[:, 0].std() < 0.5 * alike.std()
    assert chances(counts, 60).max() == 1.0
    assert np.isclose(chances(counts, 60).sum(), 60.0)


def test_sums_of_some_rows_know_their_error():
    generator = np.random.default_rng(1)
    times = np.ceil(np.exp(generator.normal(size=400)))
    exact = generator.normal(-1.0, 1.0, 400)
    near = exact + 0.3 * generator.normal(size=400) + 0.1 * times

    def summed(seed, is_known=True):
        numbers, likely = some_rows(times, 80, np.random.default_rng(seed))
        likely = likely if is_known else np.full(80, 80 / 400)
        return row_sum(exact[numbers], near, RowSample(times, numbers, likely))

    found = [summed(seed) for seed in range(400)]
    values = np.array([each.value for each in found])
    assert worst(values, times @ exact) < 1.0
    told = np.sqrt(np.mean([each.drawing_error**2 for each in found]))
    assert 0.85 < told / values.std() < 1.18  # 400 values know a deviation to 0.035
    spread = np.sqrt(times.sum() * np.cov(exact, aweights=times, ddof=0))
    assert abs(np.mean([each.error for each in found]) / spread - 1.0) < 0.02
    whole = row_sum(exact, exact, RowSample(times, np.arange(400), np.ones(400)))
    assert np.isclose(whole.value, times @ exact)
    assert np.isclose(whole.error, spread)
    assert whole.drawing_error == 0.0
    # forgotten chances are seen
    wrong = np.array([summed(seed, is_known=False).value for seed in range(400)])
    assert worst(wrong, times @ exact) > PLANTED


@pytest.mark.slow
def test_some_rows_left_out_are_near_all():
    frame = pandas.concat([table()] * 3, ignore_index=True)
    frame["x"] += np.linspace(0.0, 0.1, len(frame))
    run = invented_draws("visits ~ x + ward", frame, "poisson", weights="times")
    whole, some = run.loo(), run.loo(num_rows=60)
    assert some.subsample_size == 60
    assert some.n_data_points == whole.n_data_points == frame.times.sum()
    assert 0.0 < some.subsampling_se < 0.2 * some.se
    assert abs(some.elpd - whole.elpd) < threshold() * some.subsampling_se
    assert np.isclose(float(whole.elpd_i.sum()), whole.elpd)
    few = run.effects(num_rows=100).set_index("term").loc["x", "mean"]
    assert np.isclose(few, run.effects().set_index("term").loc["x", "mean"], rtol=0.1)


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_tables_of_every_kind_count_alike(kind):
    library = pytest.importorskip(kind)
    # an index that does not count the rows
    frame = table().astype({"ward": "category"}).set_index(7 * np.arange(NUM_ROWS) + 3)
    if kind == "polars":
        other = library.from_pandas(frame)
    else:
        other = library.Table.from_pandas(frame, preserve_index=False)
    ours, theirs = (
        invented_draws("ill ~ x + ward", given, "logistic", trials="persons", weights="times")
        for given in (other, frame)
    )
    counted = repeated(by_trial(frame))
    assert theirs.model.facts.num_observations == len(counted)
    (ward,) = (column for column in theirs.model.facts.columns if column.name == "ward")
    assert dict(ward.levels) == counted.ward.value_counts().to_dict()
    assert np.isclose(theirs.model.facts.spreads["x"], counted.x.std(ddof=0))
    assert ours.model.facts == theirs.model.facts
    found, wanted = next_steps(ours), next_steps(theirs)
    for part, values in wanted.items():
        np.testing.assert_array_equal(found[part], values)


def rows_of(weights, outcomes, trials=None):
    frame = nw.from_native(pandas.DataFrame({"y": outcomes}))
    return ObservedRows(frame, np.asarray(outcomes, float), None, np.asarray(weights), trials)


def test_parts_of_rows_are_parts():
    rows = rows_of([2.5, 0.5, 1.0], [1.0, 2.0, 3.0]).units(10, 0)
    np.testing.assert_allclose(rows.weights, [2.5 / 3] * 3 + [0.5, 1.0])
    np.testing.assert_array_equal(rows.outcomes, [1.0, 1.0, 1.0, 2.0, 3.0])
    assert rows_of([0.5, 0.5], [1.0, 2.0]).units(10, 0).weights is None
    # of very many each is drawn as often as it counts
    many = rows_of([1e6, 3e6, 6e6], [1.0, 2.0, 3.0]).units(1000, 0)
    np.testing.assert_array_equal(np.bincount(many.outcomes.astype(int))[1:], [100, 300, 600])
    trials = rows_of([2.0, 1.0], [1.0, 0.0], np.array([3.0, 2.0])).by_trial()
    np.testing.assert_array_equal(trials.weights, [2.0, 4.0, 2.0])
    np.testing.assert_array_equal(trials.outcomes, [1.0, 0.0, 0.0])


def test_a_row_below_one_is_left_out_whole():
    """Half of every row is left out by the square root of its likelihood; of rows that count
    twice one is, as of the same rows once.
    """
    frame = table().assign(half=0.5, twice=2.0)
    once, half, twice = (
        invented_draws("cost ~ x", frame, "linear", weights=weights).loo()
        for weights in (None, "half", "twice")
    )
    assert np.isclose(twice.elpd, 2.0 * once.elpd)
    assert np.isclose(twice.se, np.sqrt(2.0) * once.se)
    # less is left out of the data, so that the rest says more about the row
    assert half.elpd > 0.5 * once.elpd + 1e-3
    assert float(half.pareto_k.max()) < float(once.pareto_k.max())


def test_overdispersed_trials_are_seen():
    generator = np.random.default_rng(4)
    frame = table().assign(persons=40)
    chance = 1.0 / (1.0 + np.exp(-0.2 * frame.x))
    even = frame.assign(ill=generator.binomial(40, chance))
    uneven = frame.assign(ill=generator.binomial(40, generator.beta(4 * chance, 4 * (1 - chance))))
    run = invented_draws("ill ~ x", even, "logistic", trials="persons")
    narrow = run.posterior.map(lambda values: 0.05 * values).assign(
        x=0.2 + 0.0 * run.posterior["x"]
    )
    run._groups = {"posterior": narrow}
    share = {}
    for name, rows in (("even", even), ("uneven", uneven)):
        found = run.predictive_check(table=rows).statistics.set_index("statistic")
        share[name] = found.loc["standard deviation of rows' shares", "share_above"]
        assert found.index[0] == "share of successes"
    assert share["uneven"] == 0.0
    assert 0.001 < share["even"] < 0.999


def test_weights_of_an_array_go_with_the_table():
    frame = table()
    run = invented_draws("late ~ x", frame.assign(often=frame.times), "logistic", weights="often")
    model = _fit.model_of(
        "late ~ x", nw.from_native(frame), "logistic", None, False, None, weights=frame.times
    )
    run.model = dataclasses.replace(model, source=frame)
    with pytest.raises(ValueError, match="hold the weights of its rows, which were given as an"):
        run.effects()
    column = model.arguments["weights"]
    assert len(run.effects(table=frame.assign(**{column: frame.times}))) == 1
