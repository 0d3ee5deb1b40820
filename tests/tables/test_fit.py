"""From a table and a formula to draws with names."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pandas = pytest.importorskip("pandas")
pytest.importorskip("formulaic")
pytest.importorskip("narwhals")

import amagold  # noqa: E402
from amagold import models  # noqa: E402
from amagold.cli import main  # noqa: E402
from amagold.mode._derivatives import derivatives_at  # noqa: E402
from amagold.mode._row_bounds import squared_norm  # noqa: E402
from amagold.tables._fit import model_of  # noqa: E402
from amagold.tables._read_table import read_table  # noqa: E402

NUM_ROWS = 300
FORMULA = "late ~ distance + C(month) + origin + log(age) + distance:C(month)"


def table():
    generator = np.random.default_rng(3)
    return pandas.DataFrame(
        {
            "late": generator.random(NUM_ROWS) < 0.4,
            "distance": generator.normal(5.0, 2.0, NUM_ROWS),
            "month": generator.integers(1, 5, NUM_ROWS),
            "origin": generator.choice(["JFK", "LGA", "EWR"], NUM_ROWS),
            "age": generator.random(NUM_ROWS) + 1.0,
            "delay": generator.normal(size=NUM_ROWS),
        }
    )


def model(formula=FORMULA, family="logistic", frame=None, **options):
    settings = {"outcome": None, "drop_missing": False, "prior_scale": None, **options}
    return model_of(formula, read_table(table() if frame is None else frame), family, **settings)


def expanded():
    """The columns of the formula by hand, in the order of its coefficients."""
    data = table()
    months = [(data.month == month).to_numpy(float) for month in (2, 3, 4)]
    origins = [(data.origin == origin).to_numpy(float) for origin in ("JFK", "LGA")]
    columns = [np.ones(NUM_ROWS), data.distance, np.log(data.age), *months, *origins]
    return np.stack([*columns, *(data.distance * month for month in months)], axis=1)


def by_hand(named):
    """The reported coefficients in that order."""
    return np.concatenate(
        [
            [named["Intercept"], named["distance"], named["log(age)"]],
            *(named[name] for name in ("C(month)", "origin", "distance:C(month)")),
        ]
    )


def test_codes_are_the_expanded_matrix():
    target = model().target
    position = jnp.asarray(np.random.default_rng(0).normal(size=target.init.shape), jnp.float32)
    theta = by_hand(target.transform(np.asarray(position)))
    wanted = -np.log1p(np.exp(-np.where(table().late, 1.0, -1.0) * (expanded() @ theta)))
    np.testing.assert_allclose(
        target.log_likelihoods(position, target.data), wanted, rtol=1e-4, atol=1e-4
    )


@pytest.mark.slow
def test_second_derivatives_are_those_of_differentiation():
    target = model().target
    position = jnp.full(target.init.shape, 0.1)

    def energy(at):
        return -target.log_likelihoods(at, target.data).sum()

    found = derivatives_at(target, position, 2)
    np.testing.assert_allclose(found.gradient, jax.grad(energy)(position), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(found.hessian, jax.hessian(energy)(position), rtol=1e-3, atol=1e-3)


def test_lengths_of_rows_are_those_of_their_slopes():
    target = model().target
    matrix = jnp.asarray(np.random.default_rng(1).normal(size=2 * target.init.shape), jnp.float32)
    row = jax.tree.map(lambda leaf: leaf[7], target.data)
    slope = jax.grad(lambda at: target.bounds.predictor(at, row))(jnp.asarray(target.init))
    found = squared_norm(target.bounds, jnp.asarray(target.init), row, matrix)
    np.testing.assert_allclose(found, jnp.sum((matrix @ slope) ** 2), rtol=1e-4)


def test_the_transform_goes_there_and_back():
    for family, outcome in (("logistic", "late"), ("linear", "delay")):
        target = model(f"{outcome} ~ distance + C(month)", family).target
        position = jax.tree.map(lambda leaf: np.full(np.shape(leaf), 0.3), target.init)
        back = target.transform.inverse(target.transform(position))
        for ours, theirs in zip(*map(jax.tree.leaves, (back, position)), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-5)


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_draws_have_names_in_memory_and_in_a_store(tmp_path):
    store = tmp_path / "run.zarr"
    formula = "delay ~ distance + C(month)"
    run = amagold.fit(
        formula, table(), "linear", num_samples=50, num_warmup=50, store=store, progress=False
    )
    for posterior in (run.posterior, amagold.load(store).posterior):
        assert set(posterior.data_vars) == {"Intercept", "distance", "C(month)", "sigma"}
        assert list(posterior["C(month)_dim"].values) == ["2", "3", "4"]
        assert (posterior["sigma"] > 0).all()
    assert "C(month)[3]" in run.summary().index


@pytest.mark.slow
def test_draws_are_those_of_the_expanded_matrix():
    """With the same prior the two posteriors are one; means differ by Monte Carlo error."""
    formula = "late ~ distance + C(month)"
    settings = {"num_samples": 2000, "num_warmup": 300, "progress": False}
    ours = amagold.fit(formula, table(), prior_scale=1.0, **settings).posterior
    columns = expanded()[:, [1, 3, 4, 5]]
    dense = models.logistic(columns, table().late.to_numpy(), prior_scale=1.0)
    theirs = amagold.sample(dense, **settings).posterior["theta"]
    mine = np.concatenate(
        [
            ours[["Intercept", "distance"]].to_array().values,
            ours["C(month)"].values.transpose(2, 0, 1),
        ]
    )
    other = theirs.values.transpose(2, 0, 1)
    spread = other.std(axis=(1, 2))
    apart = np.abs(mine.mean(axis=(1, 2)) - other.mean(axis=(1, 2))) / spread
    assert apart.max() < 0.15  # five Monte Carlo errors of 2,000 effective draws
    assert np.abs(mine.std(axis=(1, 2)) / spread - 1.0).max() < 0.12


def test_the_prior_of_levels_is_said():
    assert "(a level's counts as 1/2)" in model().target.notes[0]
    assert "level" not in model("late ~ distance").target.notes[0]


def test_without_an_intercept_all_levels_count():
    terms = model("late ~ 0 + C(month)").terms
    assert [term.name for term in terms.terms] == ["C(month)"]
    assert terms.terms[0].levels == ("1", "2", "3", "4")


def test_without_a_formula_all_columns_count(tmp_path):
    chosen = table()[["late", "distance", "origin"]]
    names = [term.name for term in model(None, frame=chosen, outcome="late").terms.terms]
    assert names == ["Intercept", "distance", "origin"]


BROKEN = {
    "no outcome": ("~ distance", {}, "formula must name the outcome"),
    "no formula": ("late", {}, "formula must be a text such as"),
    "stranger": ("late ~ speed", {}, "'speed' is none"),
    "code": ("late ~ I(__import__('os').getpid())", {}, "formula must not"),
    "attribute": ("late ~ I(distance.values)", {}, "formula must not"),
    "random effect": ("late ~ 1 | origin", {}, "formula must hold random effects in brackets"),
    "family": (FORMULA, {"family": "weibull"}, "family must be one of"),
    "other name": (FORMULA, {"family": "gaussian"}, "that is called 'linear' here"),
    "text": ("origin ~ distance", {}, "outcome 'origin' must hold two classes"),
    "both": (FORMULA, {"outcome": "late"}, "outcome must not be given with a formula"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_cannot_be_is_said(name):
    formula, options, words = BROKEN[name]
    with pytest.raises(ValueError, match=words):
        model(formula, **options)


def test_missing_values_are_counted_or_left_out():
    frame = table()
    frame.loc[[3, 5], "distance"] = np.nan
    with pytest.raises(ValueError, match="2 in 'distance'; fill them in, or give drop_missing"):
        model("late ~ distance", frame=frame)
    kept = model("late ~ distance", frame=frame, drop_missing=True)
    assert kept.target.num_examples == NUM_ROWS - 2


def test_tables_of_other_kinds_are_the_same(tmp_path):
    frame, formula = table(), "late ~ distance + origin"
    frame.to_csv(tmp_path / "a.csv", index=False, sep=";")
    frame.to_parquet(tmp_path / "a.parquet")
    wanted = jax.tree.leaves(model(formula, frame=frame).target.data)
    for given in (str(tmp_path / "a.csv"), tmp_path / "a.parquet"):
        found = jax.tree.leaves(model(formula, frame=given).target.data)
        for ours, theirs in zip(found, wanted, strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-6)


@pytest.mark.parametrize(
    ("content", "words"),
    [("", "must begin with the names"), ("a,b\n", "at least one row"), (None, "is none")],
)
def test_broken_files_are_one_line(content, words, tmp_path, capsys):
    file = tmp_path / "table.csv"
    if content is not None:
        file.write_text(content)
    assert main(["fit", str(file), "a ~ b"]) == 2
    said = capsys.readouterr().err
    assert words in said
    assert said.count("\n") == 1


@pytest.mark.filterwarnings("ignore::amagold.SamplingWarning")
def test_the_command_prints_a_table(tmp_path, capsys):
    table().to_csv(tmp_path / "flights.csv", index=False)
    arguments = ["fit", str(tmp_path / "flights.csv"), "late ~ distance", "--num-samples", "50"]
    assert main(arguments) == 0
    said = capsys.readouterr().out
    assert "Intercept" in said
    assert "distance" in said


def test_a_column_with_the_name_of_the_noise_is_refused_where_there_is_noise():
    frame = table().rename(columns={"distance": "sigma"})
    with pytest.raises(ValueError, match="must not have a column called 'sigma' for linear"):
        model("delay ~ sigma", "linear", frame)
    assert model("late ~ sigma", frame=frame).terms.terms[1].name == "sigma"


def test_minus_one_and_one_are_two_classes():
    frame = table()
    frame["sign"] = np.where(frame.late, 1, -1)
    ours, wanted = (model(f"{name} ~ distance", frame=frame).target for name in ("sign", "late"))
    position = jnp.array([0.3, -0.2])
    np.testing.assert_array_equal(
        ours.log_likelihoods(position, ours.data), wanted.log_likelihoods(position, wanted.data)
    )
